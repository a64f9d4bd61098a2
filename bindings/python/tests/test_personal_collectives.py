"""Collectives whose result differs by rank: alltoall, gather, scatter, reduce, scan and exscan."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import elastic
from conftest import Job


def rows_to_all() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    for dtype in ("f4", "i2", "?"):
        given = np.arange(2 * n).reshape(n, 2).astype(dtype)
        result = elastic.alltoall(given)
        assert result.counts == [1] * n and result.values.dtype == given.dtype
        assert (result.values == given[[rank] * n]).all()
        assert len(result.contributors) == n
    counts = [to + 1 for to in range(n)]
    given = np.full((sum(counts), 3), rank)
    result = elastic.alltoall(given, counts)
    assert result.counts == [rank + 1] * n
    assert result.values[:, 0].tolist() == [r for r in range(n) for _ in range(rank + 1)]
    room = np.full((2 * n * n, 3), -1)
    result = elastic.alltoall(given, np.array(counts), room)
    assert result.values.base is not None and result.values.shape == (n * (rank + 1), 3)
    assert (room[: n * (rank + 1), 0] == result.values[:, 0]).all() and (room[n * n :] == -1).all()
    assert elastic.alltoall(np.arange(n), to=elastic.members()).values.tolist() == [rank] * n
    assert elastic.alltoall(np.zeros((0, 2))).values.shape == (0, 2)
    assert elastic.alltoall(np.zeros((2 * n, 0))).values.shape == (0, 0)
    elastic.shutdown()


def test_alltoall(job: Job) -> None:
    job(3, rows_to_all)
    job(1, rows_to_all)


def wrong_blocks() -> None:
    """Rank 1 alone gives wrong blocks, and all ranks are told so."""
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    starts: list[Callable[[list[int]], object]] = [
        lambda given: elastic.alltoall(np.ones(n), given),
        lambda given: elastic.alltoall_async(np.ones(n), given).wait(),
        lambda given: elastic.alltoall_async(np.ones(n), given, name="blocks").wait(),
    ]
    for counts, text in (
        ([1] * (n + 1), f"rank 1 gave {n + 1} blocks for the {n} members"),
        ([1] * (n - 1) + [2], f"rank 1 gave blocks that do not add up to the {n} elements"),
        ([-1] + [1] * (n - 1), "rank 1 gave blocks that do not add up"),
        ([], f"rank 1 gave 1 blocks for the {n} members"),
    ):
        for start in starts:
            with pytest.raises(elastic.MismatchError, match=text):
                start(counts if rank == 1 else [1] * n)
    with pytest.raises(elastic.MismatchError, match=f"rank 1 gave {n + 1} elements, which are no"):
        elastic.alltoall(np.ones(n + (rank == 1)))
    with pytest.raises(elastic.InvalidArgumentError, match="no whole rows of shape"):
        elastic.alltoall(np.ones((1, n)))  # each member gets a part of a row
    with pytest.raises(elastic.MismatchError, match="shape"):
        elastic.alltoall(np.ones((n, 2) if rank == 1 else (n, 2, 1)))
    with pytest.raises(TypeError, match="the array is a builtins.list"):
        elastic.alltoall([1.0])
    with pytest.raises(elastic.InvalidArgumentError, match="has room for 1"):
        elastic.alltoall(np.ones(2 * n), out=np.ones(1))
    with pytest.raises(elastic.MismatchError, match="rank 1 gave"):
        elastic.scatter(np.ones(n), 1, [2] * n if rank == 1 else None)
    rooted: list[Callable[[Any, int], object]] = [elastic.gather, elastic.scatter, elastic.reduce]
    for call in rooted:
        with pytest.raises(elastic.MismatchError, match=f"root {n} is no rank; there are {n}"):
            call(np.ones(n), n)
    assert elastic.allreduce(1) == n  # the job goes on
    elastic.shutdown()


def test_wrong_blocks_name_the_rank_on_all(job: Job) -> None:
    job(3, wrong_blocks)


def from_and_to_a_root() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    members = elastic.members()
    for root in (1, elastic.Root(1), elastic.Root.worker(members.workers[1])):
        here = rank == 1
        gathered = elastic.gather(np.full((rank + 1, 2), rank, "f4"), root)
        assert gathered.counts == (list(range(1, n + 1)) if here else [])
        assert gathered.values.shape == (n * (n + 1) // 2 if here else 0, 2)
        assert gathered.values.dtype == np.float32 and len(gathered.contributors) == n
        room = np.zeros(n)
        elastic.gather(np.array([float(rank)]), root, out=room)
        assert room.tolist() == ([float(r) for r in range(n)] if here else [0.0] * n)
        rows = np.arange(4 * n).reshape(2 * n, 2) if here else np.empty((0, 2), np.int64)
        part = elastic.scatter(rows, root)
        assert part.offset == 4 * rank and part.contributors.workers == members.workers
        assert part.values.tolist() == [[4 * rank, 4 * rank + 1], [4 * rank + 2, 4 * rank + 3]]
        counts = [1] * (n - 1) + [n + 1] if here else None
        part = elastic.scatter(rows, root, counts, np.zeros((n + 1, 2), np.int64))
        assert part.values.shape == (n + 1 if rank == n - 1 else 1, 2)
        total = np.full(3, rank + 1.0)
        elastic.reduce(total, root)
        assert (total == (n * (n + 1) / 2 if here else rank + 1)).all()
        largest = np.zeros(3)
        elastic.reduce(np.full(3, rank + 1.0), root, elastic.MAX, largest)
        assert (largest == (n if here else 0)).all()
    assert repr(elastic.Root(1)) == "elastic.Root(1)"
    lost = elastic.Root.worker(max(members.workers) - 1)
    with pytest.raises(elastic.RootLostError, match="is no member"):
        elastic.gather(np.ones(1), lost)
    elastic.shutdown()


def test_gather_scatter_and_reduce(job: Job) -> None:
    job(3, from_and_to_a_root)


def prefixes() -> None:
    elastic.init()
    rank = elastic.rank()
    data, out = np.full(3, rank + 1.0), np.zeros(3)
    elastic.scan(data, out=out)
    assert (out == (rank + 1) * (rank + 2) / 2).all() and (data == rank + 1).all()
    elastic.exscan(data, elastic.PRODUCT, out)
    assert (out == (1, 1, 2, 6)[rank]).all()
    elastic.scan(data)
    assert (data == (rank + 1) * (rank + 2) / 2).all()
    wrong: Any = "sum"
    with pytest.raises(elastic.InvalidArgumentError, match="scan: op is 'sum'"):
        elastic.scan(data, wrong)
    elastic.shutdown()


def test_scan_and_exscan(job: Job) -> None:
    job(3, prefixes)


def dies_in_an_alltoall() -> None:
    """A worker is killed while it is in an alltoall; the same call returns on the survivors."""
    elastic.init()
    n, own = elastic.size(), elastic.worker_id()
    elastic.barrier()
    first = elastic.members()
    dead = first.workers[1]
    if own == dead:
        work = elastic.alltoall_async(np.zeros((n, 1 << 18)))
        del work
        os.kill(os.getpid(), signal.SIGKILL)
    step = 0
    members = first
    while step < 50:
        rank = members.workers.index(own)
        block = 1 << 18 if step == 0 else 100
        given = np.full((len(members), block), own % 1000 + step)
        result = elastic.alltoall(given, to=members)
        alive = result.contributors.workers
        assert own in alive and set(alive) <= set(first.workers)
        assert result.counts == [1] * len(alive)
        for row, worker in zip(result.values, alive):
            assert worker != dead or step == 0
            assert worker == dead or (row == worker % 1000 + step).all()
        members, step = result.contributors, step + 1
        assert rank >= 0
    assert len(members) == n - 1
    print("went on")
    elastic.shutdown()


def test_a_worker_dies_in_an_alltoall(job: Job) -> None:
    output = job(4, dies_in_an_alltoall, "--max-restarts", "0")
    assert output.count("went on") == 3, output


def root_dies_in_a_gather() -> None:
    elastic.init()
    members = elastic.members()
    root = elastic.Root.worker(members.workers[0])
    elastic.barrier()
    if elastic.worker_id() == members.workers[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    deadline = time.monotonic() + 30
    while True:
        try:
            elastic.gather(np.ones(1 << 16), root)
        except elastic.RootLostError:
            break
        assert time.monotonic() < deadline
    assert elastic.gather(np.ones(1), 0).contributors.workers == elastic.members().workers
    print("went on")
    elastic.shutdown()


def test_a_lost_root_is_an_error_on_all(job: Job) -> None:
    output = job(3, root_dies_in_a_gather, "--max-restarts", "0")
    assert output.count("went on") == 2, output


def tensors_of_torch() -> None:
    import torch

    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    given = torch.arange(2.0 * n).reshape(n, 2).to(torch.bfloat16)
    result = elastic.alltoall(given, torch.ones(n, dtype=torch.int32))
    assert result.values.dtype == torch.bfloat16 and torch.equal(result.values, given[[rank] * n])
    assert torch.equal(elastic.alltoall_async(given).wait().values, given[[rank] * n])
    gathered = elastic.gather(torch.full((1, 2), rank), 0)
    assert gathered.values.shape == (n if rank == 0 else 0, 2)
    assert elastic.scatter(given, 0).values.tolist() == [given[rank].tolist()]
    total = torch.ones(2)
    elastic.scan(total)
    assert total.tolist() == [rank + 1, rank + 1]
    with pytest.raises(elastic.InvalidArgumentError, match="requires a gradient"):
        elastic.reduce(torch.ones(1, requires_grad=True), 0)
    elastic.shutdown()


def test_tensors_of_torch(job: Job) -> None:
    pytest.importorskip("torch", reason="could not import 'torch'")
    job(2, tensors_of_torch)
