"""Workers by the numbers that a program with a process group knows them by."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import elastic

#: An id that is no worker's.
_NO_WORKER = 0
#: Numbers that all members compare have 62 bits.
_MASK = 2**62 - 1


class GroupMembers:
    """The members as the program saw them last: when it asked for its rank or the size, or when it
    waited for an operation that is no broadcast."""

    def __init__(self, on: Any) -> None:
        """``on``: the extension module, for all members of the job, or an ``elastic.Group``."""
        self._on = on
        self._last: elastic.Contributors = on.members()
        #: Called when the members are others.
        self.changed: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        return len(self.last)

    @property
    def last(self) -> elastic.Contributors:
        return self._last

    @last.setter
    def last(self, members: elastic.Contributors) -> None:
        known, self._last = self._last, members
        if members.generation != known.generation:
            self.changed()

    def ask(self) -> elastic.Contributors:
        self.last = self._on.members()
        return self.last

    def alike(self, *numbers: int) -> list[int]:
        """``numbers``, and one for the workers that this program knows: as the shape of a row, by
        which elastic finds members that know others."""
        return [*numbers, hash(tuple(self.last.workers)) & _MASK]

    def root(self, rank: int) -> elastic.Root:
        """The worker that the program means by ``rank``, whatever becomes of the ranks."""
        return elastic.Root.worker(self.worker(rank))

    def worker(self, rank: int) -> int:
        return self.last.workers[rank] if self.has(rank) else _NO_WORKER

    def has(self, rank: int) -> bool:
        return 0 <= rank < len(self.last)

    def is_here(self, rank: int) -> bool:
        return self.worker(rank) == elastic.worker_id()

    def wait(self, work: Any, otherwise: str) -> elastic.Contributors:
        """The contributors of an operation whose members all have to give the same numbers; an error
        on all of them, with the text ``otherwise``, if one does not."""
        try:
            self.last = work.wait()
        except elastic.MismatchError as error:
            self.ask()
            raise elastic.MismatchError(f"{otherwise} ({error})") from None
        return self.last

    @contextlib.contextmanager
    def errors_of_root(self, call: str, root: int) -> Iterator[None]:
        """Errors of an operation with a root get texts that a program with ranks understands."""
        size, is_rank = len(self.last), self.has(root)
        try:
            yield
        except elastic.RootLostError as error:
            self.ask()
            if not is_rank and "is no member" in str(error):  # and no other rank meant one that was
                raise elastic.InvalidArgumentError(
                    f"{call}: root {root} is no rank; there are {size}"
                ) from None
            raise elastic.RootLostError(
                f"{call}: the worker with rank {root} is lost; call again, by the present numbers "
                f"of torch.distributed.get_rank() ({error})"
            ) from None
        except elastic.MismatchError as error:
            self.ask()
            raise elastic.MismatchError(
                f"{call}: the ranks gave different roots, or tensors of different sizes, or the "
                "members have changed and the same number meant different workers: call again, by "
                f"the present numbers of torch.distributed.get_rank() ({error})"
            ) from None

    def peer(self, call: str, rank: int) -> elastic.Root:
        """The worker that the program means by the other rank of a message."""
        if not self.has(rank):
            raise elastic.InvalidArgumentError(
                f"{call}: {rank} is no rank{self._among()}; there are {len(self.last)}"
            )
        return self.root(rank)

    @contextlib.contextmanager
    def errors_of_peer(self, call: str, rank: int) -> Iterator[None]:
        """Errors of a message get texts that a program with ranks understands."""
        try:
            yield
        except elastic.RootLostError as error:
            self.ask()
            raise elastic.RootLostError(
                f"{call}: the worker with rank {rank}{self._among()} is lost; go on with the present "
                f"numbers of torch.distributed.get_rank() ({error})"
            ) from None

    def _among(self) -> str:
        return "" if self._on is elastic._core else " of the group"


def wrong_size(call: str, expected: int, contributed: int) -> elastic.Error:
    return elastic.InvalidArgumentError(
        f"{call}: the tensors are for {expected} ranks, and {contributed} contributed: the members "
        "have changed, or the sizes are wrong; call again with tensors for "
        "torch.distributed.get_world_size() ranks"
    )


def other_sizes(call: str) -> str:
    return (
        f"{call}: the ranks gave tensors of different sizes, or for different numbers of ranks: the "
        "members may have changed; call again with tensors for torch.distributed.get_world_size() "
        "ranks"
    )
