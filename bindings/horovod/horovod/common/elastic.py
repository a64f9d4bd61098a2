"""Elastic training: the State of plain objects, and ``run``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import elastic
from horovod.common import basics
from horovod.common.exceptions import (
    HorovodInternalError,
    HostsUpdatedInterrupt,
    as_horovod_errors,
)
from horovod.common.process_sets import table
from horovod.common.root import Root


class State:
    """What a training needs to go on: ``save`` and ``restore`` keep a copy here, ``sync`` sends
    that of a member to all."""

    def __init__(self, bcast_object: Callable[..., Any], get_rank: Callable[[], int]) -> None:
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._reset_callbacks: list[Callable[[], None]] = []

    def register_reset_callbacks(self, callbacks: list[Callable[[], None]]) -> None:
        """These are called when workers have come or left, before the training function is."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Keeps a copy, and lets workers join and leave.

        Raises:
            HostsUpdatedInterrupt: some did; on all members alike.
        """
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """``commit`` without the copy."""
        run = _Run.present
        if run is not None:
            run.step_boundary()

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def reset(self) -> None:
        """For subclasses: called before the callbacks."""


class ObjectState(State):
    """Objects that can be pickled, which become attributes."""

    def __init__(
        self, bcast_object: Callable[..., Any], get_rank: Callable[[], int], **kwargs: Any
    ) -> None:
        self._saved_state = kwargs
        self._set_attributes()
        super().__init__(bcast_object, get_rank)

    def save(self) -> None:
        self._saved_state = {name: getattr(self, name) for name in self._saved_state}

    def restore(self) -> None:
        self._set_attributes()

    def sync(self) -> None:
        if self._saved_state:
            present = {name: getattr(self, name) for name in self._saved_state}
            self._saved_state = self._bcast_object(present, _Run.root())
            self._set_attributes()

    def _set_attributes(self) -> None:
        for name, value in self._saved_state.items():
            setattr(self, name, value)


class _Run:
    """One call of a function under ``run``: the view that it knows, and which rank has the state.

    elastic's own State has no more than a name: it tells this worker when others come, and
    ``State.sync`` sends them what a script for Horovod keeps, as that may differ among the members.
    """

    present: _Run | None = None

    def __init__(self) -> None:
        # `begun` tells a joiner that there was a state, which it has to receive.
        self._boundary = elastic.State(interface="horovod", begun=False)
        self._generation = 0
        self._has_state = False
        self._root: int = 0
        self._place: tuple[int, int] | None = None

    @staticmethod
    def root() -> int:
        """The rank whose state ``sync`` sends; a Root inside ``run``."""
        return _Run.present._root if _Run.present is not None else 0

    @staticmethod
    def place() -> tuple[int, int]:
        """Rank and size by which samples are divided. Inside ``run`` they are those of the last
        commit: a death may come between the calls of two members, which then would divide by
        different numbers."""
        run = _Run.present
        if run is None or run._place is None:
            return basics.rank(), basics.size()
        return run._place

    def step_boundary(self) -> None:
        """Lets workers join and leave. If any did, also since the last time, it raises
        HostsUpdatedInterrupt, on all members alike."""
        basics.finish_what_is_under_way()
        self._boundary.commit()
        known = self._generation
        self._meet()
        if self._generation != known:
            raise HostsUpdatedInterrupt

    def _meet(self) -> None:
        """Finds out, on all members alike, which view it is and which worker has the state.

        Raises:
            BelowMinimumError: the training has begun, and none has it.
        """
        own = np.array([self._has_state])
        gathered = elastic.allgather_async(own, name="horovod.meet").wait()
        self._generation = gathered.contributors.generation
        have_it = np.flatnonzero(gathered.values)
        if len(have_it) == 0 and self._boundary.begun:
            raise elastic.BelowMinimumError("the last worker that had the state is gone")
        rank = int(have_it[0]) if len(have_it) else 0
        workers = gathered.contributors.workers
        self._root = Root(rank, workers[rank])
        self._place = workers.index(elastic.worker_id()), len(workers)

    def train(self, state: State, call: Callable[[], Any]) -> Any:
        """Calls ``call``, and again where workers have come or left."""
        self._has_state = False
        self._meet()
        reset = False
        while True:
            try:
                if reset:
                    table.clear()  # a worker that has joined knows none
                    state.on_reset()
                if self._has_state:
                    state.save()  # what `restore` goes back to, if the root is lost
                state.sync()
                self._has_state = self._boundary.begun = True
                return call()
            except HostsUpdatedInterrupt:
                reset = True
            except HorovodInternalError as error:
                if not isinstance(error.__cause__, elastic.Error):
                    raise
                if not isinstance(error.__cause__, elastic.RootLostError):
                    raise error.__cause__ from None  # elastic.run knows what to do
                state.restore()
                self._meet()
                reset = True


def run_fn(func: Callable[..., Any], reset: Callable[[], None] | None = None) -> Callable[..., Any]:
    """``func(state, ...)`` as a function that goes on where workers come and go.

    It is called again, by all members alike, after workers have come or left; a joiner calls it in
    the middle of the training. So its loop goes by what is in the State.
    """

    @functools.wraps(func)
    def wrapper(state: State, *arguments: Any, **named: Any) -> Any:
        run = _Run()
        results: list[Any] = []

        def body(_: elastic.State) -> None:
            results.append(run.train(state, lambda: func(state, *arguments, **named)))

        _Run.present = run
        try:
            with as_horovod_errors():
                outcome = elastic.run(run._boundary, body)
        finally:
            _Run.present = None
        if outcome != elastic.RunOutcome.FINISHED:
            # What follows in the script is for the workers that finished the training.
            raise SystemExit(0)
        return results[-1]

    return wrapper
