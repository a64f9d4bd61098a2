"""Asynchronous collectives without and with a name, and what is done with their Work."""

from __future__ import annotations

import gc
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

import elastic
from conftest import Job


def all_of_them(name: str | None) -> None:
    n, rank = elastic.size(), elastic.rank()
    last = n - 1
    ones = [np.ones(4) for _ in range(5)]
    blocks = np.arange(2.0 * n).reshape(n, 2)

    def named(call: str) -> str | None:
        return None if name is None else f"{name} {call}"

    data = np.full(2, rank)
    gathered = elastic.allgather_async(np.full((rank + 1, 2), rank), name=named("allgather"))
    part = elastic.reduce_scatter_async(np.arange(8.0), name=named("reduce_scatter"))
    into = elastic.reduce_scatter_async(np.arange(8.0), out=np.zeros(8), name=named("into"))
    received = elastic.alltoall_async(blocks, name=named("alltoall"))
    placed = elastic.alltoall_async(blocks, [1] * n, np.zeros((n, 2)), name=named("placed"))
    collected = elastic.gather_async(np.full(2, rank), last, name=named("gather"))
    shared = elastic.scatter_async(blocks, 0, name=named("scatter"))
    works = [
        elastic.broadcast_async(data, last, name=named("broadcast")),
        elastic.reduce_async(ones[0], 0, name=named("reduce")),
        elastic.scan_async(ones[1], name=named("scan")),
        elastic.exscan_async(ones[2], out=ones[3], name=named("exscan")),
        elastic.barrier_async(name=named("barrier")),
    ]
    elastic.wait_all([*works, gathered, received, placed, collected, shared, part, into])
    assert all(len(work.contributors) == n and work.ready() for work in works)
    assert (data == last).all() and (ones[0] == (n if rank == 0 else 1)).all()
    assert (ones[1] == rank + 1).all() and (ones[2] == 1).all() and (ones[3] == rank).all()
    result = gathered.wait()
    assert result.counts == list(range(1, n + 1)) and result is gathered.wait()
    assert result.values.shape == (n * (n + 1) // 2, 2)
    for scattered in (part.wait(), into.wait()):
        first = scattered.offset
        assert (scattered.values == n * np.arange(first, first + len(scattered.values))).all()
    for blocks_of_all in (received.wait(), placed.wait()):
        assert (blocks_of_all.values == blocks[rank]).all() and blocks_of_all.counts == [1] * n
    assert collected.wait().counts == ([2] * n if rank == last else [])
    assert (shared.wait().values == blocks[rank]).all()


def in_order_and_named() -> None:
    elastic.init()
    all_of_them(None)
    all_of_them("named")
    n = elastic.size()
    # Without names: in order with calls that wait.
    data, out = np.ones(3), np.zeros(3)
    works = [elastic.allreduce_async(data), elastic.allreduce_async(data, elastic.SUM, out)]
    several = elastic.grouped_allreduce_async([np.ones(2), np.ones(3, "f4")])
    assert elastic.allreduce(1) == n
    assert several.ready() and all(work.ready() for work in works)
    assert (data == n).all() and (out == n * n).all()
    # With names: in another order on each rank.
    names = [str(i) for i in range(6)]
    mine = names if elastic.rank() == 0 else names[::-1]
    pending = {
        name: elastic.alltoall_async(np.full(n, int(name)), name=name)
        if int(name) % 2
        else elastic.allgather_async(np.full(1, int(name)), name=name)
        for name in mine
    }
    assert all((pending[name].wait().values == int(name)).all() for name in names)
    with pytest.raises(elastic.InvalidArgumentError, match="empty"):
        elastic.barrier_async(name="")
    elastic.shutdown()


def test_in_order_and_named(job: Job) -> None:
    job(3, in_order_and_named)
    job(1, in_order_and_named)


def continuations() -> None:
    elastic.init()
    n = elastic.size()
    seen: list[Any] = []
    called = threading.Event()

    def note(work: elastic.Work) -> None:
        seen.append(len(work.wait()))
        called.set()

    elastic.allreduce_async(np.ones(3)).then(note)
    assert called.wait(30) and seen == [n]

    pending = elastic.allgather_async(np.ones(2), name="gathered")
    pending.wait()
    pending.then(lambda its: seen.append(its.wait().counts))
    assert seen[1:] == [[2] * n]  # at once: it is complete

    refused: list[str] = []
    asked = threading.Event()

    def calls_a_collective(work: elastic.Work) -> None:
        try:
            elastic.barrier()
        except elastic.InvalidArgumentError as error:
            refused.append(str(error))
        asked.set()

    elastic.barrier_async().then(calls_a_collective)
    assert asked.wait(30) and "Work.then" in refused[0], refused

    def fails(work: elastic.Work) -> None:
        raise ValueError("of the function")

    failed = elastic.barrier_async()
    failed.then(fails)
    failed.wait()

    wrong = elastic.alltoall_async(np.ones(n), [1] * (n + 1))
    errors: list[elastic.Error] = []
    told = threading.Event()

    def note_error(work: elastic.Pending[elastic.Gathered]) -> None:
        try:
            work.wait()
        except elastic.MismatchError as error:
            errors.append(error)
        told.set()

    wrong.then(note_error)
    assert told.wait(30) and len(errors) == 1
    elastic.barrier()
    elastic.shutdown()


def test_functions_are_called_when_work_is_complete(job: Job) -> None:
    output = job(2, continuations)
    assert output.count("ValueError: of the function") == 2, output
    assert output.count("fails at 0x") == 2, output  # as sys.unraisablehook names it


def waits_for_several() -> None:
    elastic.init()
    last = elastic.barrier_async(name="last")
    if elastic.rank() == 0:
        other = elastic.allreduce_async("other", np.ones(3))
        assert elastic.wait_any([elastic.barrier_async(name="never there"), other]) == 1
    else:
        elastic.allreduce_async("other", np.ones(3)).wait()
        elastic.barrier()
        never = elastic.barrier_async(name="never there")
        never.wait()
    if elastic.rank() == 0:
        elastic.barrier()
    last.wait()
    with pytest.raises(elastic.InvalidArgumentError, match="there is no operation"):
        elastic.wait_any([])
    n = elastic.size()
    wrong = elastic.alltoall_async(np.ones(n), [1] * (n + 1))
    right = elastic.barrier_async()
    with pytest.raises(elastic.MismatchError, match="blocks for the"):
        elastic.wait_all([right, wrong])
    assert right.ready() and wrong.ready()
    assert elastic.wait_any([right, wrong]) == 0
    elastic.shutdown()


def test_wait_any_and_wait_all(job: Job) -> None:
    job(2, waits_for_several)


def forgotten() -> None:
    """Work, arrays and functions may be forgotten before the operation is complete."""
    elastic.init()
    n = elastic.size()
    calls: list[int] = []
    for step in range(100):
        elastic.alltoall_async(np.full((n, 10_000), step)).then(
            lambda its: calls.append(len(its.wait().values))
        )
        elastic.allgather_async(np.ones(10_000), name=f"step {step}")
        gc.collect(0)
    elastic.barrier()
    elastic.barrier_async(name="last").wait()
    assert calls == [n] * 100
    elastic.shutdown()


def test_arrays_live_until_their_work_is_complete(job: Job) -> None:
    job(2, forgotten)


def death_between() -> None:
    elastic.init()
    own, first = elastic.worker_id(), elastic.members()
    works = [elastic.alltoall_async(np.full(len(first), own % 1000), to=first) for _ in range(20)]
    works += [
        elastic.alltoall_async(np.full(len(first), own % 1000), to=first, name=f"n{i}")
        for i in range(20)
    ]
    if own == first.workers[1]:
        works[9].wait()
        os.kill(os.getpid(), signal.SIGKILL)
    for work in works:
        result = work.wait()
        assert result.values.tolist() == [w % 1000 for w in result.contributors.workers]
    elastic.barrier()
    assert elastic.size() == len(first) - 1
    print("went on")
    elastic.shutdown()


def test_a_worker_dies_with_work_under_way(job: Job) -> None:
    output = job(3, death_between, "--max-restarts", "0")
    assert output.count("went on") == 2, output


def ends_with_functions_to_call() -> None:
    elastic.init()
    for _ in range(100):
        elastic.barrier_async().then(lambda _: None)
    elastic.allgather_async(np.ones(3)).then(lambda its: print(len(its.wait().values)))


def test_a_program_may_end_while_functions_are_called(job: Job) -> None:
    output = job(2, ends_with_functions_to_call)
    assert "Fatal" not in output and "terminate" not in output, output
