"""Groups: collectives of some of the workers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence

import numpy as np
import pytest

import elastic
from conftest import Job


def row_of_two(members: Sequence[tuple[int, int]], own: int) -> list[int]:
    """Ranks 0 and 1, 2 and 3 and so on."""
    workers = [worker for worker, _ in members]
    return [w for at, w in enumerate(workers) if at // 2 == workers.index(own) // 2]


def values_in_groups() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    half = elastic.group(elastic.GroupRule.every(2, rank % 2))
    pair = elastic.group(elastic.GroupRule.by("row of two", row_of_two))
    hosts = [elastic.GroupRule.per_host(), elastic.GroupRule.across_hosts()]
    assert [elastic.group(rule).size() for rule in hosts] == [n, 1]
    for group, ranks in (
        (half, list(range(rank % 2, n, 2))),
        (pair, [r for r in range(n) if r // 2 == rank // 2]),
        (elastic.group(elastic.GroupRule.ranks([rank])), [rank]),
    ):
        own, size = group.rank(), group.size()
        workers = elastic.members().workers
        assert group.members().workers == [workers[r] for r in ranks]
        assert (own, size) == (ranks.index(rank), len(ranks))
        for count in (0, 5, 100_000):
            values = np.full(count, rank + 1.0)
            contributors = group.allreduce(values)
            assert contributors.workers == group.members().workers
            assert (values == sum(r + 1.0 for r in ranks)).all()
        assert group.allreduce(rank, elastic.MAX) == ranks[-1]
        values = np.full(3, float(rank))
        group.broadcast(values, size - 1)
        assert values.tolist() == [ranks[-1]] * 3
        gathered = elastic.allgather(np.full((own + 1, 2), rank), context=group)
        assert gathered.counts == [at + 1 for at in range(size)]
        assert gathered.values[:, 0].tolist() == [r for at, r in enumerate(ranks) for _ in range(at + 1)]
        exchanged = elastic.alltoall(np.arange(size) + 10 * rank, context=group)
        assert exchanged.values.tolist() == [own + 10 * r for r in ranks]
        part = elastic.reduce_scatter(np.full(size, float(rank)), context=group)
        assert part.values.tolist() == [sum(ranks)] and part.offset == own
        at_root = elastic.gather(np.array([rank]), 0, context=group)
        assert at_root.values.tolist() == (ranks if own == 0 else [])
        dealt = elastic.scatter(np.arange(size) + 10 * rank, 0, context=group)
        assert dealt.values.tolist() == [10 * ranks[0] + own]
        total = np.array([rank])
        group.reduce(total, elastic.Root(0))
        assert total[0] == (sum(ranks) if own == 0 else rank)
        total = np.array([rank])
        group.exscan(total)
        assert total[0] == sum(ranks[:own])
        assert group.barrier().workers == group.members().workers
    assert elastic.allreduce(1) == n
    elastic.shutdown()


@pytest.mark.parametrize("workers", [1, 4])
def test_values_in_groups(job: Job, workers: int) -> None:
    job(workers, values_in_groups)


def named_in_any_order() -> None:
    """Each worker is in two groups, and submits to them in another order than its partners."""
    elastic.init()
    rank = elastic.rank()
    half = elastic.group(elastic.GroupRule.every(2, rank % 2))
    pair = elastic.group(elastic.GroupRule.by("row of two", row_of_two))
    calls = [(group, name) for group in (half, pair) for name in ("a", "b", "c")]
    for step in range(10):
        order = calls if (rank + step) % 2 == 0 else calls[::-1]
        values = {call: np.full(1000, float(rank)) for call in calls}
        works = [group.allreduce_async(name, values[group, name]) for group, name in order]
        pending = [elastic.allgather_async(np.array([rank]), name="g", context=g) for g in (half, pair)]
        elastic.wait_all(works)
        for group, name in calls:
            ranks = [rank % 2, rank % 2 + 2] if group is half else [rank // 2 * 2, rank // 2 * 2 + 1]
            assert (values[group, name] == sum(ranks)).all(), (group, name)
        assert [len(each.wait().values) for each in pending] == [2, 2]
    work = half.allreduce_async(np.ones(3))
    elastic.allreduce(np.ones(3))  # of the job, which has no order with calls of a group
    work.wait()
    elastic.shutdown()


def test_calls_of_several_groups_come_in_any_order(job: Job) -> None:
    job(4, named_in_any_order)


def outside_a_group() -> None:
    elastic.init()
    rank, n = elastic.rank(), elastic.size()
    group = elastic.group(elastic.GroupRule.ranks([0, n - 1]))
    assert group is elastic.group(elastic.GroupRule.ranks([n - 1, 0]))
    assert group.name == elastic.GroupRule.ranks([0, n - 1]).name
    assert repr(group) == f"elastic.Group('{group.name}')"
    if rank in (0, n - 1):
        assert group.allreduce(1) == 2
    else:
        assert group.rank() == -1 and group.size() == 2
        with pytest.raises(elastic.InvalidArgumentError, match=f"rank {rank} of the job, is not in"):
            group.allreduce(1)
        with pytest.raises(elastic.InvalidArgumentError, match="is not in the group"):
            elastic.allgather_async(np.ones(1), name="x", context=group)
    elastic.barrier()
    # Rules that are wrong, and functions that are.
    with pytest.raises(elastic.InvalidArgumentError, match="the step, 0, has to be positive"):
        elastic.GroupRule.every(0)
    with pytest.raises(elastic.InvalidArgumentError, match="rank 1 is there twice"):
        elastic.GroupRule.ranks([1, 1])
    with pytest.raises(elastic.InvalidArgumentError, match="needs a name"):
        elastic.GroupRule.by("", row_of_two)
    wrong = elastic.group(elastic.GroupRule.by("none", lambda members, own: None))  # type: ignore
    with pytest.raises(elastic.InvalidArgumentError, match="'none' of a group returned None"):
        wrong.rank()
    fails = elastic.group(elastic.GroupRule.by("fails", lambda members, own: [members[99][0]]))
    for call in (fails.size, fails.members, lambda: fails.allreduce(1)):
        with pytest.raises(IndexError):
            call()
    with pytest.raises(TypeError):
        elastic.Group()
    assert elastic.allreduce(1) == n
    elastic.shutdown()


def test_outside_a_group(job: Job) -> None:
    job(3, outside_a_group)


def mismatches_and_roots() -> None:
    elastic.init()
    rank = elastic.rank()
    group = elastic.group(elastic.GroupRule.ranks([0, 2]))
    if rank in (0, 2):
        with pytest.raises(elastic.MismatchError, match="group of ranks 0 and 2"):
            group.allreduce(np.ones(1 + rank))
        with pytest.raises(elastic.MismatchError, match="root 2 is no rank; there are 2"):
            group.broadcast(np.ones(1), 2)
        outsider = elastic.Root.worker(elastic.members().workers[1])
        with pytest.raises(elastic.RootLostError):
            elastic.gather(np.ones(1), outsider, context=group)
        assert group.allreduce(1) == 2
    elastic.shutdown()


def test_mismatches_and_roots(job: Job) -> None:
    job(3, mismatches_and_roots)


def nested() -> None:
    elastic.init()
    rank = elastic.rank()
    even = elastic.group(elastic.GroupRule.every(2))
    last = even.group(elastic.GroupRule.ranks([1, 2]))  # ranks 2 and 4 of the job
    assert last is even.group(elastic.GroupRule.ranks([1, 2]))
    assert last.rank() == {2: 0, 4: 1}.get(rank, -1) and last.size() == 2
    if last.rank() >= 0:
        assert last.allreduce(rank) == 6
    workers = elastic.members().workers
    chosen = elastic.group(elastic.GroupRule.workers([workers[3], workers[1]]))
    assert chosen.members().workers == [workers[1], workers[3]]
    elastic.shutdown()


def test_a_group_within_a_group(job: Job) -> None:
    job(5, nested)


def of_a_context() -> None:
    """A group keeps its context, and is asked by several threads while a function chooses."""
    context = elastic.Context()
    group = context.group(elastic.GroupRule.by("row of two", row_of_two))
    asked: list[int] = []
    threads = [threading.Thread(target=lambda: asked.append(group.size())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked == [2] * 8
    own = group.rank()
    context.barrier()
    del context
    assert group.allreduce(own) == 1
    group.barrier()


def test_a_group_of_a_context(job: Job) -> None:
    job(4, of_a_context)


def asks_for_a_group() -> None:
    """The group is locked while its function chooses."""
    elastic.init()
    everyone = elastic.GroupRule.per_host()

    def asks(members: list[tuple[int, int]], own: int) -> list[int]:
        return [worker for worker, host in members][: elastic.group(everyone).size()]

    for _ in range(2):
        with pytest.raises(elastic.InvalidArgumentError, match="in the function of a group's rule"):
            elastic.group(elastic.GroupRule.by("asks", asks)).size()
    assert elastic.group(everyone).allreduce(1) == elastic.size()
    elastic.shutdown()


def test_a_rule_asks_no_group(job: Job) -> None:
    job(2, asks_for_a_group)


def dies_in_a_group() -> None:
    """A worker is killed while its group is in a call: the call returns on the others of the group,
    and the other group goes on."""
    elastic.init()
    n, rank, own = elastic.size(), elastic.rank(), elastic.worker_id()
    group = elastic.group(elastic.GroupRule.every(2, rank % 2))
    first = group.members().workers
    dead = elastic.members().workers[2]
    elastic.barrier()
    if own == dead:
        group.allreduce_async("0", np.ones(1 << 18))
        os.kill(os.getpid(), signal.SIGKILL)
    for step in range(20):
        values = np.full(1 << 18 if step == 0 else 100, 1.0)
        contributors = group.allreduce_async(str(step), values).wait()
        assert own in contributors.workers and set(contributors.workers) <= set(first)
        assert (values == len(contributors)).all()
        assert step == 0 or dead not in contributors.workers
    assert dead not in elastic.barrier().workers
    assert group.members().workers == [worker for worker in first if worker != dead]
    assert group.allreduce(1) == (n // 2 if rank % 2 else n // 2 - 1)
    print("went on")
    elastic.shutdown()


def test_a_worker_dies_in_a_call_of_a_group(job: Job) -> None:
    output = job(6, dies_in_a_group, "--max-restarts", "0")
    assert output.count("went on") == 5, output
