"""Process sets: the one with all members, and the refusal of others."""

from __future__ import annotations

from typing import Any

from horovod.common import basics
from horovod.common.absent import refusal, refuse

_INSTEAD = "every collective is for all members: leave process_set out"


class ProcessSet:
    """A part of the members; only ``global_process_set`` is there."""

    process_set_id = 0

    def __init__(self, *ranks: Any) -> None:
        refuse("hvd.ProcessSet", _INSTEAD)

    def included(self) -> bool:
        return True

    def rank(self) -> int:
        return basics.rank()

    def size(self) -> int:
        return basics.size()

    @property
    def ranks(self) -> list[int]:
        return list(range(basics.size()))


#: All members.
global_process_set: ProcessSet = object.__new__(ProcessSet)


def check_process_set(process_set: Any) -> None:
    """Refuses all process sets but the global one."""
    if process_set is not global_process_set:
        refuse("process_set", _INSTEAD)


add_process_set = refusal("hvd.add_process_set", _INSTEAD)
remove_process_set = refusal("hvd.remove_process_set", _INSTEAD)
