"""Process sets: parts of the members, with collectives of their own."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import elastic
from horovod.common import basics
from horovod.common.absent import refuse
from horovod.common.exceptions import HorovodInternalError, as_horovod_errors


def _sorted_ranks(ranks: Any) -> list[int]:
    try:
        given = [operator.index(rank) for rank in ranks]
    except TypeError:
        raise ValueError(
            f"hvd.ProcessSet: give a list of ranks, not {ranks!r}; communicators of MPI are not taken"
        ) from None
    if len(set(given)) != len(given):
        raise ValueError(f"hvd.ProcessSet: a rank is there twice in {given}")
    return sorted(given)


class ProcessSet:
    """A part of the members, by their ranks. ``hvd.init`` or ``hvd.add_process_set`` makes it known,
    and gives it its ``process_set_id``, which is None before.

    Its members are workers, which stay the same when ranks change; those that leave the job leave
    the set.
    """

    def __init__(self, ranks: Any) -> None:
        self.process_set_id: int | None = None
        self._given = _sorted_ranks(ranks)
        self._workers: list[int] | None = None
        self._group: Any = None
        #: Performs the set's operations in order, from the first one on.
        self.queue: Any = None

    @property
    def on(self) -> Any:
        """What has the collectives of these members."""
        return self._group

    @property
    def ranks(self) -> list[int]:
        """The present ranks of its members; those that were given, while it is not known."""
        if self._workers is None:
            return self._given
        places = {worker: rank for rank, worker in enumerate(elastic.members().workers)}
        return sorted(places[worker] for worker in self._workers if worker in places)

    def included(self) -> bool:
        """Whether this worker is a member."""
        if self._workers is None:
            return basics.rank() in self._given
        return elastic.worker_id() in self._workers

    def rank(self) -> int | None:
        """This worker's rank in the set; None if the set is not known.

        Raises:
            ValueError: this worker is not a member.
        """
        if self.process_set_id is None:
            return None
        rank = int(self.on.rank())
        if rank < 0:
            raise ValueError(f"this worker, rank {basics.rank()}, is no member of {self}")
        return rank

    def size(self) -> int | None:
        """The number of members; None if the set is not known."""
        return None if self.process_set_id is None else int(self.on.size())

    def __repr__(self) -> str:
        return f"hvd.ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"

    def _begin(self, process_set_id: int, workers: list[int]) -> None:
        self._workers = workers
        self._group = elastic.group(elastic.GroupRule.workers(workers))
        self.process_set_id = process_set_id

    def _end(self) -> None:
        """Its operations that are under way are completed."""
        if self.queue is not None:
            self.queue.close()
            self.queue = None
        self._given, self._workers, self._group = self.ranks, None, None
        self.process_set_id = None


class _AllMembers(ProcessSet):
    """The set that is always there."""

    def __init__(self) -> None:
        super().__init__([])
        self.process_set_id = 0

    @property
    def on(self) -> Any:
        return elastic._core

    @property
    def ranks(self) -> list[int]:
        return list(range(basics.size()))

    def included(self) -> bool:
        return True

    def rank(self) -> int:
        return basics.rank()

    def size(self) -> int:
        return basics.size()


#: All members.
global_process_set = _AllMembers()

#: The name of all operations of all members that have none, as only those with a name know of
#: members that are in hvd.join. They are done one after the other, in the same order by all.
IN_ORDER = "horovod.in_order"


class _Table:
    """The sets that are known, by their numbers, which are the same on all members."""

    def __init__(self) -> None:
        self.sets: dict[int, ProcessSet] = {}
        self._free: list[int] = []
        self._next = 1
        #: Performs a call in order with the other collectives of all members.
        self.in_order: Callable[[Callable[[], Any]], Any] = lambda call: call()

    def add(self, process_set: ProcessSet) -> ProcessSet:
        basics._check()
        if process_set.process_set_id is not None:
            raise ValueError(f"{process_set} is there already")
        ranks = process_set._given
        with as_horovod_errors():
            view = elastic.members()
            members, workers = self.in_order(lambda: _agree_on_workers(ranks, view))
        known = [set(members), *(set(each._workers or ()) for each in self.sets.values())]
        if set(workers) in known:
            raise ValueError(f"there is a process set of the ranks {ranks} already")
        if self._free:
            number = self._free.pop(0)
        else:
            number, self._next = self._next, self._next + 1
        process_set._begin(number, workers)
        self.sets[number] = process_set
        return process_set

    def remove(self, process_set: ProcessSet) -> bool:
        number = process_set.process_set_id
        if number is None or self.sets.get(number) is not process_set:
            return False
        process_set._end()
        del self.sets[number]
        self._free.append(number)
        return True

    def clear(self) -> None:
        """Ends all sets, so that workers that have joined since know as many as the others."""
        for process_set in self.sets.values():
            process_set._end()
        self.sets, self._free, self._next = {}, [], 1


table = _Table()


def _agree_on_workers(ranks: list[int], view: elastic.Contributors) -> tuple[list[int], list[int]]:
    """The members, and those with these ranks, in the oldest of the views in which the members began
    the call: those that began it later may mean other workers by these numbers.

    Raises:
        HorovodInternalError: on all members alike, if they gave different ranks.
        ValueError: on all members alike, if there is no such rank.
    """
    digest = hashlib.blake2b(repr(ranks).encode(), digest_size=8).digest()
    row = [int.from_bytes(digest, "little"), view.generation, *view.workers]
    own = np.array(row, np.uint64).view(np.int64)
    gathered = elastic.allgather_async(own, name=IN_ORDER).wait()
    ends = np.cumsum(gathered.counts)[:-1]
    rows = [part.view(np.uint64).tolist() for part in np.split(gathered.values, ends)]
    if len({digest for digest, *_ in rows}) > 1:
        raise HorovodInternalError(
            f"add_process_set: the workers gave different ranks; this one gave {ranks}"
        )
    _, _, *workers = min(rows, key=lambda row: row[1])
    if not ranks or ranks[0] < 0 or ranks[-1] >= len(workers):
        raise ValueError(
            f"add_process_set: {ranks} are not all ranks; there are {len(workers)}, from 0"
        )
    return workers, [workers[rank] for rank in ranks]


def add_process_set(process_set: Any) -> ProcessSet:
    """Makes a ProcessSet, or a list of ranks, known. All members call it, in the same order.

    Raises:
        ValueError: there is one with these members already, or a rank is wrong.
        HorovodInternalError: the workers gave different ranks; on all of them.
    """
    given = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    return table.add(given)


def remove_process_set(process_set: ProcessSet) -> bool:
    """Ends the use of a set. All members call it, in the same order.

    Returns whether there was such a set; the global one stays.
    """
    basics._check()
    return table.remove(process_set)


def add_from_init(process_sets: Any) -> None:
    """Those that ``hvd.init`` was given."""
    given = [each if isinstance(each, ProcessSet) else ProcessSet(each) for each in process_sets]
    if given and elastic.size() == 0:
        refuse(
            "hvd.init(process_sets=...) on a worker that joins a running job",
            "call hvd.add_process_set in the function that hvd.elastic.run calls",
        )
    try:
        for each in given:
            table.add(each)
    except Exception:
        table.clear()
        raise


def check_known(process_set: Any) -> None:
    """
    Raises:
        ValueError: it is no set that is known.
    """
    if not isinstance(process_set, ProcessSet):
        raise ValueError(f"process_set is {process_set!r}; give an hvd.ProcessSet")
    if process_set.process_set_id is None:
        raise ValueError(
            f"{process_set} is not known: give it to hvd.add_process_set. Where workers came or left "
            "in hvd.elastic.run, add it again in the training function"
        )


def check_process_set(process_set: Any) -> None:
    """
    Raises:
        ValueError: it is no set that is known, or this worker is not in it.
    """
    check_known(process_set)
    if not process_set.included():
        raise ValueError(
            f"this worker, rank {basics.rank()}, is no member of {process_set}, and cannot take part "
            "in its operations"
        )
