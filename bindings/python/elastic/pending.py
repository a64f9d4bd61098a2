"""Asynchronous operations with a result besides their contributors, and waits for several operations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from elastic import _core
from elastic._core import Work

Result = TypeVar("Result")


class Pending(Generic[Result]):
    """An asynchronous operation whose ``wait`` returns a result, such as a Gathered."""

    def __init__(self, work: Work, result: Callable[[Any], Result]) -> None:
        self._work = work
        self._make: Callable[[Any], Result] | None = result
        self._result: Result
        self._making = threading.Lock()

    def wait(self) -> Result:
        """Waits until the operation is complete, and returns its result. Raises its error if it
        failed."""
        contributors = self._work.wait()
        with self._making:
            if self._make is not None:
                self._result = self._make((*self._work._result(), contributors))
                self._make = None
        return self._result

    def wait_for(self, seconds: float) -> bool:
        """Waits at most so long, and returns whether the operation is complete."""
        return self._work.wait_for(seconds)

    def ready(self) -> bool:
        """Returns whether the operation is complete, without waiting."""
        return self._work.ready()

    def then(self, function: Callable[[Pending[Result]], object]) -> None:
        """``Work.then``, with this Pending: ``wait`` returns at once in ``function``."""
        self._work.then(lambda _: function(self))

    @property
    def work(self) -> Work:
        """The operation itself."""
        return self._work


def wait_any(works: Sequence[Work | Pending[Any]]) -> int:
    """Waits until one of the operations is complete, successfully or not.

    Returns:
        Its index: the lowest, if several are complete.

    Raises:
        InvalidArgumentError: there is none.
    """
    return _core._wait_any(_works(works))


def wait_all(works: Sequence[Work | Pending[Any]]) -> None:
    """Waits until all operations are complete. Raises the error of the first, in their order, that
    failed; all are complete then, too."""
    _core._wait_all(_works(works))


def _works(works: Sequence[Work | Pending[Any]]) -> list[Work]:
    return [each.work if isinstance(each, Pending) else each for each in works]
