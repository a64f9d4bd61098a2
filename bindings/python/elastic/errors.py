"""The library's exceptions: a class for each code, all of them under ``Error``."""

from __future__ import annotations

import builtins
from typing import Any


class Error(Exception):
    """An error of elastic. The text says what happened and what to do."""

    code: int = -1

    def __init__(self, message: str, peer: int = -1, generation: int = 0) -> None:
        super().__init__(message)
        #: The rank of the worker that it concerns, or -1.
        self.peer = peer
        #: The number of the view in force after the error, or 0 if none applies.
        self.generation = generation

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the C++ exception, which is of this process alone.
        kept = {name: value for name, value in self.__dict__.items() if name != "_thrown"}
        return type(self), self.args, kept


class InvalidArgumentError(Error, ValueError):
    """A call, option or environment variable is wrong; nothing was done."""

    code = 0


class MismatchError(Error):
    """Ranks called different things. Raised on every rank."""

    code = 1


class NotInitializedError(Error, RuntimeError):
    """``init`` has not been called, or ``shutdown`` has; or this is a forked child of the worker."""

    code = 2


class UnavailableError(Error, OSError):
    """The rendezvous server cannot be reached, or a resource is missing."""

    code = 3


class RefusedError(Error):
    """The job refused this worker: another secret, version, state or set of options."""

    code = 4


class TimeoutError(Error, builtins.TimeoutError):
    """A bounded wait ended."""

    code = 5


class RootLostError(Error):
    """A broadcast's root died before any survivor had all its data; call again."""

    code = 6


class BelowMinimumError(Error):
    """The job cannot go on, mostly because too few workers are left; the message has the reason."""

    code = 7


class EvictedError(Error):
    """The job went on without this worker. Inside ``run`` it joins again."""

    code = 8


class RemovedError(Error):
    """This worker was asked to leave. ``run`` returns RunOutcome.REMOVED."""

    code = 9


class StoppedError(Error):
    """The job was asked to stop. ``run`` returns RunOutcome.STOPPED."""

    code = 10


class NotFiniteError(Error, ArithmeticError):
    """A gradient had NaN or Inf, and the option non_finite says "error"."""

    code = 11


class InternalError(Error, RuntimeError):
    """A defect of the library, or this worker has left the job after an exception or for lack of
    memory."""

    code = 12


#: The class of each code of the C++ library.
BY_CODE = {
    kind.code: kind
    for kind in (
        InvalidArgumentError,
        MismatchError,
        NotInitializedError,
        UnavailableError,
        RefusedError,
        TimeoutError,
        RootLostError,
        BelowMinimumError,
        EvictedError,
        RemovedError,
        StoppedError,
        NotFiniteError,
        InternalError,
    )
}
