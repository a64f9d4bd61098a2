"""The end of a program that has not called ``shutdown``."""

from __future__ import annotations

import atexit
import contextlib
import signal
import sys
from typing import Any

from elastic import _core
from elastic.errors import Error

#: How long the operations under way may take to complete when the program has ended.
_PATIENCE_SECONDS = 5.0


class _Late(BaseException):
    """The other members have not come to an operation that is under way here."""


def _give_up(*arguments: Any) -> None:
    raise _Late


@atexit.register
def _shut_down() -> None:
    """A program that comes to its end has done its part of the job. One that an exception ends has
    not: it counts as lost, and so does one with an operation that the others do not make."""
    if getattr(sys, "last_type", None) is not None:
        return
    with contextlib.suppress(Error, _Late):
        _core.rank()  # raises if this process is no worker, or has left
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE_SECONDS)
        try:
            _core.shutdown()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
