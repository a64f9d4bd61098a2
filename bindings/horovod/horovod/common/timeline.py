"""The timeline of each worker, by elastic."""

from __future__ import annotations

import elastic
from horovod.common.exceptions import as_horovod_errors


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Writes a timeline from now on, each worker its own: ``trace.json`` becomes
    ``trace.<worker>.json``. ``mark_cycles`` has no effect: elastic has no cycles."""
    del mark_cycles
    with as_horovod_errors():
        elastic.start_timeline(str(file_path))


def stop_timeline() -> None:
    """Completes the timeline's file. Nothing without one."""
    with as_horovod_errors():
        elastic.stop_timeline()
