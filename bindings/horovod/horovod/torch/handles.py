"""Asynchronous operations: handles, the names in use, and the thread that performs what has no name
in elastic."""

from __future__ import annotations

import concurrent.futures
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

import torch

from horovod.common import basics
from horovod.common.exceptions import as_horovod_errors
from horovod.common.process_sets import ProcessSet, global_process_set, table


class Handle:
    """An operation under way; for ``poll`` and ``synchronize``."""

    def __init__(self, work: Any, result: Callable[[Any], Any], key: str | None = None) -> None:
        """``work`` has ``wait`` and ``ready``, as elastic.Work. ``result`` makes the result of
        ``synchronize`` of that of ``wait``; it is called once."""
        self._work = work
        self._result = result
        self._key = key
        self._output: Any = None
        self._error: Exception | None = None
        self._seen = False
        if key is not None:
            _in_use[key] = self

    def done(self) -> bool:
        """Whether the operation is complete, successfully or not."""
        if not self._seen and self._work.ready():
            self._see()
        return self._seen

    def under_way(self) -> bool:
        return not self._seen and not self._work.ready()

    def wait(self) -> Any:
        """The result, when it is there."""
        if not self._seen:
            self._see()
        if self._error is not None:
            raise self._error
        return self._output

    __call__ = wait

    def then(self, change: Callable[[Any], Any]) -> Handle:
        """The same operation, whose result ``change`` makes of this one's."""
        before = self._result
        self._result = lambda work: change(before(work))
        return self

    def _see(self) -> None:
        try:
            with as_horovod_errors():
                self._output = self._result(self._work.wait())
        except Exception as error:
            self._error = error
        # Not for an interrupt such as Ctrl-C, after which the operation is still under way.
        self._seen = True
        if self._key is not None and _in_use.get(self._key) is self:
            del _in_use[self._key]


#: Operations with a name that the program has not yet seen to be complete.
_in_use: dict[str, Handle] = {}


def key_of(kind: str, name: str | None, process_set: ProcessSet) -> str | None:
    """Under what an operation with this name is known. Each process set has names of its own.

    Raises:
        ValueError: there is one already.
    """
    if name is None:
        return None
    key = f"horovod.{kind}.{name}"
    if process_set is not global_process_set:
        key = f"horovod.{process_set.process_set_id}.{kind}.{name}"
    if key in _in_use:
        raise ValueError(
            f"{kind}: the name '{name}' is in use by an operation that was not waited for; call "
            "hvd.synchronize(handle) before the name is used again, or give another"
        )
    return key


def forget_completed() -> None:
    """Sets the names of operations that are complete free."""
    for handle in list(_in_use.values()):
        handle.done()


class _Task:
    """One call for the thread, with its future result."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._stream = torch.cuda.current_stream() if torch.cuda.is_initialized() else None

    def run(self) -> None:
        try:
            if self._stream is None:
                result = self._call()
            else:
                with torch.cuda.stream(self._stream):
                    result = self._call()
        except BaseException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(result)

    def wait(self) -> Any:
        return self._future.result()

    def ready(self) -> bool:
        return self._future.done()


class _InOrder:
    """Performs calls one at a time, in the order in which they were submitted.

    Collectives without a name are matched by their order, which has to be the same on all ranks; so
    all of them go through here.
    """

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._last: _Task | None = None

    def submit(self, call: Callable[[], Any]) -> _Task:
        if self._thread is None:
            # A daemon: an operation for which the others do not come must not keep the process.
            self._thread = threading.Thread(target=self._perform, name="horovod", daemon=True)
            self._thread.start()
        self._last = task = _Task(call)
        self._tasks.put(task)
        return task

    def drain(self) -> None:
        """Waits until all that was submitted is done."""
        last = self._last
        if last is not None and threading.current_thread() is not self._thread:
            concurrent.futures.wait([last._future])

    def busy(self) -> bool:
        """Whether an operation is under way, or one with a name."""
        if self._last is not None and not self._last.ready():
            return True
        return any(handle.under_way() for handle in list(_in_use.values()))

    def close(self) -> None:
        """Completes what was submitted, and ends the thread."""
        self.drain()
        basics._queues.remove(self)
        if self._thread is not None:
            self._tasks.put(None)

    def forget(self) -> None:
        """For a child of os.fork, which has no such thread."""
        self.__init__()  # type: ignore[misc]

    def _perform(self) -> None:
        while (task := self._tasks.get()) is not None:
            task.run()


#: Of all members.
in_order = _InOrder()
basics._queues.append(in_order)
table.in_order = lambda call: in_order.submit(call).wait()


def queue_of(process_set: ProcessSet) -> _InOrder:
    """Operations of different sets have no order among each other, so each set has its own."""
    if process_set is global_process_set:
        return in_order
    if process_set.queue is None:
        process_set.queue = _InOrder()
        basics._queues.append(process_set.queue)
    result: _InOrder = process_set.queue
    return result


def drain(process_set: ProcessSet) -> None:
    """Waits until all that was submitted for these members is done."""
    own = in_order if process_set is global_process_set else process_set.queue
    if own is not None:
        own.drain()


def _forget_all() -> None:
    for each in basics._queues:
        if isinstance(each, _InOrder):
            each.forget()


os.register_at_fork(after_in_child=_forget_all)


def poll(handle: Handle) -> bool:
    """Whether the operation is complete, without waiting."""
    return handle.done()


def synchronize(handle: Handle) -> Any:
    """Waits for an operation, and returns its result: a tensor, or a list of them for a group.

    Raises:
        HorovodInternalError: it failed.
        TypeError: ``handle`` is none.
    """
    if not isinstance(handle, Handle):
        raise TypeError(
            f"hvd.synchronize: give the handle that an asynchronous call returned; this is {handle!r}"
        )
    return handle.wait()
