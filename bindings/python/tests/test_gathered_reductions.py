"""Reductions that gather: values with indices, and sparse rows."""

from __future__ import annotations

import math
import os
import signal
from typing import Any

import numpy as np
import pytest

import elastic
from conftest import Job


def locations() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    for dtype in ("f2", "f4", "f8", "i1", "i8", "u4"):
        values = np.array([[rank, n - rank], [5, 5]]).astype(dtype)
        indices = np.array([[rank, 100 + rank], [-rank, rank]])
        contributors = elastic.minloc(values, indices)
        assert values.tolist() == [[0, 1], [5, 5]] and len(contributors) == n
        assert indices.tolist() == [[0, 100 + n - 1], [1 - n, 0]]
        values = np.array([rank, n - rank]).astype(dtype)
        indices = np.array([rank, 100 + rank])
        elastic.maxloc(values, indices)
        assert values.tolist() == [n - 1, n] and indices.tolist() == [n - 1, 100]
    for call in (elastic.minloc, elastic.maxloc):
        values, indices = np.array([math.nan if rank == 1 else float(rank)]), np.array([rank])
        call(values, indices)
        assert math.isnan(values[0]) and indices[0] == 1
    values = np.array([-0.0 if rank == n - 1 else 0.0])
    indices = np.array([n - rank])
    elastic.minloc(values, indices)
    assert indices[0] == 1 and np.signbit(values[0])
    elastic.shutdown()


def test_minloc_and_maxloc(job: Job) -> None:
    job(3, locations)
    job(2, locations)


def wrong_locations() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    values, indices = np.ones(3), np.arange(3)
    bad: list[tuple[Any, Any, str]] = [
        (values, np.arange(2), "there are 3 values and 2 indices"),
        (values, np.arange(3, dtype=np.int32), "the indices are no int64"),
        (np.ones((3, 2))[:, 0], indices, "the array of values is not contiguous"),
    ]
    for some_values, some_indices, text in bad:
        with pytest.raises(elastic.InvalidArgumentError, match=text):
            elastic.minloc(some_values, some_indices)
    with pytest.raises(elastic.MismatchError, match="rank 0 called minloc of 3 f64, rank 1 called"):
        elastic.minloc(values[: 3 - (rank == 1)], indices[: 3 - (rank == 1)])
    with pytest.raises(elastic.MismatchError, match="rank 1 called maxloc of 3 f64"):
        (elastic.maxloc if rank == 1 else elastic.minloc)(values, indices)
    assert elastic.allreduce(1) == n  # the job goes on
    elastic.shutdown()


def test_wrong_locations_name_the_rank_on_all(job: Job) -> None:
    job(2, wrong_locations)


def dies_in_a_minloc() -> None:
    """A worker is killed between or in calls; each result is that of its contributors."""
    elastic.init()
    own = elastic.worker_id()
    first = elastic.members()
    place = {worker: at for at, worker in enumerate(first.workers)}
    for step in range(60):
        if step == 20 and place[own] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        # The member that will die has the least first value until then.
        values = np.full(1000, 10.0 + place[own])
        values[0] = 0.0 if place[own] == 1 else place[own] + 1.0
        indices = np.full(1000, place[own])
        alive = {place[worker] for worker in elastic.minloc(values, indices).workers}
        assert step >= 20 or len(alive) == len(first)
        least = 1 if 1 in alive else min(alive)
        assert indices[0] == least and values[0] == (0.0 if least == 1 else least + 1.0)
        assert (indices[1:] == min(alive)).all() and (values[1:] == 10.0 + min(alive)).all()
    assert 1 not in alive and len(alive) == len(first) - 1
    print("went on")
    elastic.shutdown()


def test_a_worker_dies_in_a_minloc(job: Job) -> None:
    output = job(4, dies_in_a_minloc, "--max-restarts", "0")
    assert output.count("went on") == 3, output


def sparse_sums() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    for dtype in ("f4", "f8", "i4"):
        # Row 0 of all, and twice this member's own.
        indices = np.array([rank + 1, 0, rank + 1])
        values = np.array([[rank, 1], [5, 5], [1, 1]]).astype(dtype)
        sums = elastic.sparse_allreduce(indices, values, n + 1)
        assert isinstance(sums, elastic.SparseRows) and len(sums.contributors) == n
        assert sums.indices.tolist() == list(range(n + 1)) and sums.values.dtype == values.dtype
        assert sums.values.tolist() == [[5 * n, 5 * n]] + [[r + 1, 2] for r in range(n)]
    mean = elastic.sparse_allreduce(np.array([2]), np.array([1.5 * n]), 3, elastic.AVERAGE)
    assert mean.indices.tolist() == [2] and mean.values.tolist() == [1.5 * n]
    # One member gives no rows, and then all.
    some = np.zeros(0 if rank == 0 else 1, np.int64)
    sums = elastic.sparse_allreduce(some, np.ones((len(some), 2, 3)), 1)
    assert sums.values.shape == (1, 2, 3) and (sums.values == n - 1).all()
    none = elastic.sparse_allreduce(np.zeros(0, np.int64), np.ones((0, 4)), 10)
    assert none.indices.shape == (0,) and none.values.shape == (0, 4)
    elastic.shutdown()


def test_sparse_allreduce(job: Job) -> None:
    job(3, sparse_sums)


def several_tensors() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    few = (np.array([rank, n]), np.array([[1.0, 2.0]] * 2), n + 1)
    many = (np.arange(4), np.full((4, 3), rank, "i4"), 4)
    first, second = elastic.grouped_sparse_allreduce(iter([few, many]))
    assert first.indices.tolist() == list(range(n + 1))
    assert first.values.tolist() == [[1, 2]] * n + [[n, 2 * n]]
    assert second.indices.tolist() == [0, 1, 2, 3] and second.values.dtype == np.int32
    assert (second.values == sum(range(n))).all() and second.values.shape == (4, 3)
    assert len(first.contributors) == len(second.contributors) == n
    bad: list[tuple[Any, str]] = [
        ([], "give the rows of one tensor at least"),
        ([few, few[:2]], "tensor 1 is not its indices, its values and its number of rows"),
        ([few, None], "tensor 1 is not its indices"),
        ([(*few[:2], -1)], "a tensor of -1 rows is none"),
        ([few, (few[0], few[1][:1], 9)], "tensor 1: there are 2 indices and 2 values"),
    ]
    for tensors, text in bad:
        with pytest.raises(elastic.InvalidArgumentError, match=text):
            elastic.grouped_sparse_allreduce(tensors)
    with pytest.raises(elastic.InvalidArgumentError, match="index 9 of rank 1.* tensor 1"):
        wrong = np.array([9 if rank == 1 else 0])
        elastic.grouped_sparse_allreduce([few, (wrong, np.ones(1), 9)])
    elastic.shutdown()


def test_sparse_rows_of_several_tensors(job: Job) -> None:
    job(3, several_tensors)


def sparse_under_way() -> None:
    """In program order, and under names that come in another order on each member."""
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    pair = elastic.group(elastic.GroupRule.ranks([0, 1]))
    for context, members in ((None, n), (pair, 2)):
        if rank >= members:
            continue
        names = ["a", "b", "c", None]
        if rank == 1:
            names = ["c", "a", "b", None]
        pending = {}
        for name in names:
            indices, values = np.array([rank, n]), np.full((2, 2), 5.0)
            pending[name] = elastic.sparse_allreduce_async(
                indices, values, n + 1, name=name, context=context
            )
            values[:], indices[:] = -1, 0  # they were copied
        elastic.wait_all(list(pending.values()))
        for each in pending.values():
            sums = each.wait()
            assert each.wait() is sums
            assert sums.indices.tolist() == [*range(members), n]
            assert sums.values.tolist() == [[5, 5]] * members + [[5 * members] * 2]
            assert len(sums.contributors) == members
    for name in ("wrong", None):
        wrong = elastic.sparse_allreduce_async(np.array([rank]), np.ones(1), 1, name=name)
        for _ in range(2):
            with pytest.raises(elastic.InvalidArgumentError, match="index 1 of rank 1"):
                wrong.wait()
    assert elastic.allreduce(1) == n  # the job goes on
    elastic.shutdown()


def test_sparse_allreduce_async(job: Job) -> None:
    job(3, sparse_under_way)


def sums_of_many_rows() -> None:
    """Few rows and many, which travel in other forms, beside a model in NumPy."""
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    for dtype in ("f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"):
        for op in (elastic.SUM, elastic.AVERAGE):
            if op == elastic.AVERAGE and dtype == "?":
                continue
            for count in (0, 2, 60):  # of 20 rows
                random = np.random.default_rng(count)
                rows = [random.integers(0, 20, count if r != 1 else count // 2) for r in range(n)]
                values = [random.integers(0, 2, (len(each), 3)).astype(dtype) for each in rows]
                whole = np.zeros((20, 3), np.float64)
                for its_rows, its_values in zip(rows, values):
                    np.add.at(whole, its_rows, its_values)
                if op == elastic.AVERAGE:
                    whole = whole / n if dtype[0] == "f" else whole // n
                sums = elastic.sparse_allreduce(rows[rank], values[rank], 20, op)
                assert sums.indices.tolist() == np.unique(np.concatenate(rows)).tolist()
                assert sums.values.dtype == np.dtype(dtype)
                assert (sums.values == whole[sums.indices].astype(dtype)).all(), (dtype, op, count)
    elastic.shutdown()


def test_many_rows(job: Job) -> None:
    job(3, sums_of_many_rows)
    job(1, sums_of_many_rows)


def dies_among_many_rows() -> None:
    """A worker is killed while all give all rows; each result is that of its contributors."""
    elastic.init()
    own, n = elastic.worker_id(), elastic.size()
    place = {worker: at for at, worker in enumerate(elastic.members().workers)}
    for step in range(40):
        if step == 10 and place[own] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        indices = np.append(np.arange(1000), 1000 + place[own])
        sums = elastic.sparse_allreduce(indices, np.full((1001, 8), 10 ** place[own]), 1000 + n)
        alive = [place[worker] for worker in sums.contributors.workers]
        assert sums.indices[1000:].tolist() == [1000 + at for at in alive]
        assert (sums.values[:1000] == sum(10**at for at in alive)).all()
    assert alive == [0, 2, 3]
    print("went on")
    elastic.shutdown()


def test_a_worker_dies_among_many_rows(job: Job) -> None:
    output = job(4, dies_among_many_rows, "--max-restarts", "0")
    assert output.count("went on") == 3, output


def in_groups() -> None:
    """Each worker is in two groups, and calls them in another order than its partners."""
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    half = elastic.group(elastic.GroupRule.every(2, rank % 2))
    ends = elastic.group(elastic.GroupRule.ranks([0, n - 1]))
    groups = [(half, list(range(rank % 2, n, 2)))]
    if rank in (0, n - 1):
        groups.append((ends, [0, n - 1]))
    for group, ranks in groups:
        values, indices = np.array([float(rank)]), np.array([rank])
        assert group.minloc(values, indices).workers == group.members().workers
        assert values[0] == indices[0] == ranks[0]
        values, indices = np.array([float(rank)]), np.array([rank])
        group.maxloc(values, indices)
        assert values[0] == indices[0] == ranks[-1]
        sums = elastic.sparse_allreduce(
            np.array([rank, n]), np.array([[rank], [1]]), n + 1, context=group
        )
        assert sums.indices.tolist() == [*ranks, n]
        assert sums.values[:, 0].tolist() == [*ranks, len(ranks)]
        assert sums.contributors.workers == group.members().workers
        with pytest.raises(elastic.InvalidArgumentError, match=f"index {ranks[0]} of rank 0, at"):
            elastic.sparse_allreduce(np.array([rank]), np.array([[rank]]), 0, context=group)
    if rank not in (0, n - 1):
        with pytest.raises(elastic.InvalidArgumentError, match="is not in the group"):
            elastic.sparse_allreduce(np.array([0]), np.array([[0]]), 1, context=ends)
    assert elastic.allreduce(1) == n
    elastic.shutdown()


def test_in_groups(job: Job) -> None:
    job(4, in_groups)
    job(3, in_groups)


def dies_in_a_call_of_a_group() -> None:
    """A worker of one of two groups is killed; each result is that of its contributors."""
    elastic.init()
    own, n = elastic.worker_id(), elastic.size()
    place = {worker: at for at, worker in enumerate(elastic.members().workers)}
    group = elastic.group(elastic.GroupRule.every(2, place[own] % 2))
    for step in range(40):
        if step == 10 and place[own] == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        ones = np.ones((2, 500))
        sums = elastic.sparse_allreduce(np.array([place[own], n]), ones, n + 1, context=group)
        alive = [place[worker] for worker in sums.contributors.workers]
        assert sums.indices.tolist() == [*alive, n] and (sums.values[-1] == len(alive)).all()
        values, indices = np.array([1.0, place[own]]), np.array([place[own]] * 2)
        alive = [place[worker] for worker in group.maxloc(values, indices).workers]
        assert indices.tolist() == [min(alive), max(alive)]
    assert alive == ([1, 3] if place[own] % 2 else [0, 4])
    print("went on")
    elastic.shutdown()


def test_a_worker_dies_in_a_call_of_a_group(job: Job) -> None:
    output = job(5, dies_in_a_call_of_a_group, "--max-restarts", "0")
    assert output.count("went on") == 4, output


def wrong_rows() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    one = np.array([0])
    bad: list[tuple[Any, Any, Any, str]] = [
        (np.arange(2), np.ones((3, 2)), elastic.SUM, "there are 2 indices and 6 values"),
        (one.astype(np.int32), np.ones((1, 2)), elastic.SUM, "the indices are no int64"),
        (one, np.ones((1, 2)), elastic.MAX, "summed or averaged only"),
        (one, np.ones((1, 2)), "sum", "sparse_allreduce: op is 'sum'"),
    ]
    for indices, values, op, text in bad:
        with pytest.raises(elastic.InvalidArgumentError, match=text):
            elastic.sparse_allreduce(indices, values, 4, op)
    for wrong in (4, -1):
        with pytest.raises(
            elastic.InvalidArgumentError,
            match=f"index {wrong} of rank 1, at place 1, is no row; the tensor has 4",
        ):
            indices = np.array([0, wrong if rank == 1 else 3])
            elastic.sparse_allreduce(indices, np.ones((2, 2)), 4)
    with pytest.raises(elastic.MismatchError, match="4 rows of 2 f64, sum, rank 1 called .*of 3 f64"):
        elastic.sparse_allreduce(one, np.ones((1, 2 + (rank == 1))), 4)
    assert elastic.allreduce(1) == n  # the job goes on
    elastic.shutdown()


def test_wrong_rows_are_named(job: Job) -> None:
    job(2, wrong_rows)


def rows_of_torch() -> None:
    import torch

    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    values = torch.ones(2, 3, dtype=torch.bfloat16)
    sums = elastic.sparse_allreduce(torch.tensor([rank, n]), values, n + 1)
    whole = torch.sparse_coo_tensor(sums.indices[None], sums.values, (n + 1, 3)).to_dense()
    assert whole.dtype == torch.bfloat16
    assert whole.tolist() == [[1.0] * 3] * n + [[float(n)] * 3]
    losses, places = torch.tensor([3.0 - rank]), torch.tensor([rank])
    elastic.minloc(losses, places)
    assert places.item() == n - 1
    elastic.shutdown()


def test_rows_of_torch(job: Job) -> None:
    pytest.importorskip("torch", reason="could not import 'torch'")
    job(2, rows_of_torch)
