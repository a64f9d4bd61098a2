"""Operations of a process group under way, as torch.distributed knows them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch


class Part:
    """An operation of elastic, and the function that waits for it and fills the program's tensors."""

    def __init__(self, work: Any, finish: Callable[[], Any]) -> None:
        self.work = work
        self.finish = finish


class GroupWork(torch._C._distributed_c10d.Work):
    """One or several operations under way. Tensors other than those of calls in place are filled by
    ``wait``, or by an ``is_completed`` that returns True."""

    def __init__(self, parts: Sequence[Part], result: Any) -> None:
        super().__init__()
        self._parts = list(parts)
        self._result = result
        self._error: Exception | None = None
        self._ended = False
        self._lock = threading.Lock()

    def wait(self, timeout: Any = None) -> bool:
        """Waits without a limit; a timeout has no effect."""
        self._end()
        if self._error is not None:
            raise self._error
        return True

    def _end(self) -> None:
        with self._lock:
            if self._ended:
                return
            try:
                with torch.no_grad():
                    for part in self._parts:
                        part.finish()
            except Exception as error:  # not an interrupt, after which it is still under way
                self._error = error
            self._ended = True
            self._parts = []

    def is_completed(self) -> bool:
        if not self._ended and all(part.work.ready() for part in list(self._parts)):
            self._end()
        return self._ended

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> Any:
        self.wait()
        return self._result

    def get_future(self) -> torch.futures.Future[Any]:
        """Waits, so that an error is raised as what it is: a future of PyTorch has its text alone."""
        self.wait()
        future: torch.futures.Future[Any] = torch.futures.Future()
        future.set_result(self._result)
        return future


def complete(result: Any) -> Any:
    """A finished operation. A Work of Python's own hangs the DistributedDataParallel of 1.13."""
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)


def is_asynchronous(opts: Any) -> bool:
    """Whether the program gave async_op=True. PyTorch 1.13 does not say, and waits."""
    return bool(getattr(opts, "asyncOp", False))


def started(parts: Sequence[Part], result: Any, opts: Any) -> Any:
    """The operation under way; complete, unless the program asked for an asynchronous one."""
    work = GroupWork(parts, result)
    if is_asynchronous(opts):
        return work
    work.wait()
    return complete(result)
