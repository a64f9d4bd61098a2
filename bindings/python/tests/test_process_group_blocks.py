"""The process group's collectives with a block for each rank, and its asynchronous operations."""

from __future__ import annotations

import os
import signal
import time

import pytest

import elastic

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")


def blocks() -> None:
    import elastic.torch

    elastic.torch.init_process_group()
    rank, n = dist.get_rank(), dist.get_world_size()
    for asynchronous in (False, True):

        def done(work: object) -> None:
            if asynchronous:
                assert work.wait() and work.is_completed() and work.is_success()

        output = torch.zeros(n, 2)
        given = torch.arange(2.0 * n).reshape(n, 2) + 100 * rank
        done(dist.all_to_all_single(output, given, async_op=asynchronous))
        assert output.tolist() == [[100 * r + 2 * rank, 100 * r + 2 * rank + 1] for r in range(n)]
        sent, received = list(range(n)), [rank] * n
        output = torch.zeros(rank * n, 2, dtype=torch.int16)
        given = torch.full((sum(sent), 2), rank, dtype=torch.int16)
        done(dist.all_to_all_single(output, given, received, sent, async_op=asynchronous))
        assert output[:, 0].tolist() == [r for r in range(n) for _ in range(rank)]
        outputs = [torch.zeros(rank + 1, r + 1) for r in range(n)]
        inputs = [torch.full((to + 1, rank + 1), float(rank)) for to in range(n)]
        done(dist.all_to_all(outputs, inputs, async_op=asynchronous))
        assert all((block == r).all() for r, block in enumerate(outputs))

        gathered = [torch.zeros(2, 2) for _ in range(n)] if rank == 1 else None
        done(dist.gather(torch.full((2, 2), float(rank)), gathered, 1, async_op=asynchronous))
        assert rank != 1 or all((block == r).all() for r, block in enumerate(gathered))
        parts = [torch.full((3,), r) for r in range(n)] if rank == n - 1 else None
        part = torch.zeros(3, dtype=torch.int64)
        done(dist.scatter(part, parts, n - 1, async_op=asynchronous))
        assert (part == rank).all()
        total = torch.full((3,), rank + 1.0)
        done(dist.reduce(total, 0, op=dist.ReduceOp.MAX, async_op=asynchronous))
        assert (total == (n if rank == 0 else rank + 1)).all()
    objects = [None] * n if rank == 0 else None
    dist.gather_object({"rank": rank}, objects)
    assert rank != 0 or objects == [{"rank": r} for r in range(n)]
    own = [None]
    dist.scatter_object_list(own, [f"for {r}" * r for r in range(n)] if rank == 0 else None)
    assert own == [f"for {rank}" * rank]
    elastic.shutdown()


def test_a_block_for_each_rank(job) -> None:
    job(3, blocks)


def mistakes() -> None:
    """One rank is wrong, and all get an error."""
    import elastic.torch

    elastic.torch.init_process_group()
    rank, n = dist.get_rank(), dist.get_world_size()
    wrong = rank == 1
    ones = torch.ones(n)
    for call, text in (
        (lambda: dist.all_to_all_single(ones.clone(), torch.ones(n + wrong)), "rank 1 gave"),
        (
            lambda: dist.all_to_all_single(
                ones.clone(), ones, [1] * n, [2] * n if wrong else [1] * n
            ),
            "rank 1 gave blocks that do not add up",
        ),
        (
            lambda: dist.all_to_all(
                [torch.zeros(1)] * n, [torch.zeros(1)] * (n + wrong)
            ),
            f"rank 1 gave {n + 1} blocks for the {n} members",
        ),
        (
            lambda: dist.gather(
                torch.ones(1), [torch.ones(1)] * (n + 1) if wrong else None, 1
            ),
            "different sizes",
        ),
        (lambda: dist.gather(torch.ones(1 + wrong), [torch.ones(1)] * n if rank == 0 else None), "sizes"),
        (
            lambda: dist.scatter(torch.ones(1), [torch.ones(1)] * (n - 1) if wrong else None, 1),
            "different sizes",
        ),
        (
            lambda: dist.scatter(torch.ones(2), [torch.ones(1)] * n if wrong else None, 1),
            "different sizes",
        ),
        (lambda: dist.reduce(torch.ones(1 + wrong), 0), "sizes"),
        (lambda: dist.reduce(torch.ones(1), 1 if wrong else 0), "different roots"),
    ):
        with pytest.raises(elastic.MismatchError, match=text):
            call()
    with pytest.raises(elastic.InvalidArgumentError, match=f"root {n} is no rank; there are {n}"):
        dist.reduce(ones, n)
    if rank == 0:
        with pytest.raises(elastic.InvalidArgumentError, match="have sent .* the output is for"):
            dist.all_to_all_single(ones, ones, [n] + [0] * (n - 1), [1] * n)
    else:
        dist.all_to_all_single(ones.clone(), ones, [1] * n, [1] * n)
    dist.all_reduce(ones)
    assert (ones == n).all()
    elastic.shutdown()


def test_mistakes_are_errors_on_all(job) -> None:
    job(3, mistakes)


def under_way() -> None:
    """An asynchronous operation is not complete before the others have come to it."""
    import elastic.torch

    elastic.torch.init_process_group()
    rank, n = dist.get_rank(), dist.get_world_size()
    calls = (
        lambda: dist.all_reduce(tensor, async_op=True),
        lambda: dist.broadcast(tensor, 0, async_op=True),
        lambda: dist.all_gather([torch.zeros(2) for _ in range(n)], tensor, async_op=True),
        lambda: dist.reduce_scatter(torch.zeros(2), [tensor] * n, async_op=True),
        lambda: dist.reduce(tensor, 0, async_op=True),
        lambda: dist.all_to_all_single(torch.zeros(2 * n), torch.ones(2 * n), async_op=True),
        lambda: dist.gather(tensor, [torch.zeros(2)] * n if rank == 0 else None, async_op=True),
        lambda: dist.scatter(tensor, [torch.ones(2)] * n if rank == 0 else None, async_op=True),
        lambda: dist.barrier(async_op=True),
    )
    for number, call in enumerate(calls):
        tensor = torch.ones(2)
        if rank == 0:
            work = call()
            assert not work.is_completed(), number
            elastic.allreduce_async(f"go on {number}", torch.zeros(1)).wait()
        else:
            elastic.allreduce_async(f"go on {number}", torch.zeros(1)).wait()
            work = call()
        while not work.is_completed():  # without a wait
            time.sleep(0.001)
        assert work.wait()
    # In program order with calls that wait.
    totals = [torch.full((1000,), float(step)) for step in range(10)]
    works = [dist.all_reduce(total, async_op=True) for total in totals]
    last = torch.ones(1)
    dist.all_reduce(last)
    assert last == n and all(work.is_completed() for work in works)
    assert all((total == n * step).all() for step, total in enumerate(totals))
    failing = dist.all_to_all_single(torch.ones(n), torch.ones(n + (rank == 1)), async_op=True)
    for _ in range(2):
        with pytest.raises(elastic.MismatchError, match="rank 1 gave"):
            failing.wait()
    assert failing.is_completed() and not failing.is_success()
    assert isinstance(failing.exception(), elastic.MismatchError)
    future = dist.all_reduce(totals[1], async_op=True).get_future()
    assert (future.wait()[0] == n * n).all()
    elastic.shutdown()


def test_asynchronous_operations(job) -> None:
    if not hasattr(dist.AllreduceOptions(), "asyncOp"):
        pytest.skip("this PyTorch does not say which operations are asynchronous")
    job(2, under_way)


def wait_for_size(size: int) -> None:
    """Without asking the process group, which then means other workers by its numbers."""
    deadline = time.monotonic() + 30
    while elastic.size() != size:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def members_change() -> None:
    """Lists that were made before a death, then by one rank before and by another after it."""
    import elastic.torch

    elastic.torch.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_size(2)

    def calls(of: int) -> list[object]:
        root = of - 1  # the worker that had rank 2
        here = rank == 2
        ones = [torch.ones(1) for _ in range(of)]
        return [
            lambda: dist.all_to_all_single(torch.zeros(of), torch.ones(of)),
            lambda: dist.all_to_all([torch.zeros(1) for _ in range(of)], ones),
            lambda: dist.gather(torch.ones(1), ones if here else None, root),
            lambda: dist.scatter(torch.ones(1), ones if here else None, root),
        ]

    group = dist.group.WORLD
    named = group._named
    before = named.last
    assert len(before) == size == 3
    group.rank = lambda: named.last.workers.index(elastic.worker_id())  # does not ask
    for call in calls(3):
        named.last = before
        with pytest.raises(elastic.InvalidArgumentError, match="the members have changed"):
            call()
    for number in range(4):
        named.last = before if rank == 2 else elastic.members()
        with pytest.raises(elastic.MismatchError):
            calls(len(named))[number]()
    del group.rank
    now = dist.get_world_size()
    assert now == 2
    output = torch.zeros(now)
    dist.all_to_all_single(output, torch.full((now,), float(dist.get_rank())))
    assert output.tolist() == [0, 1]
    print("went on")
    elastic.shutdown()


def test_lists_for_other_members_are_an_error_on_all(job) -> None:
    output = job(3, members_change, "--max-restarts", "0")
    assert output.count("went on") == 2, output


def dies_with_operations_under_way() -> None:
    import elastic.torch

    elastic.torch.init_process_group()
    rank, n = dist.get_rank(), dist.get_world_size()
    tensors = [torch.ones(1 << 16) for _ in range(10)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    block = torch.ones(n << 16)
    exchange = dist.all_to_all_single(torch.zeros(n << 16), block, async_op=True)
    if rank == 1:
        works[4].wait()
        os.kill(os.getpid(), signal.SIGKILL)
    for work, tensor in zip(works, tensors):
        work.wait()
        assert (tensor == tensor[0]).all() and tensor[0] in (n - 1, n)
    with pytest.raises(elastic.InvalidArgumentError, match="the members have changed"):
        exchange.wait()
    assert dist.get_world_size() == n - 1
    root = dist.get_world_size() - 1
    total = torch.ones(1)
    dist.reduce(total, root)
    assert total == (n - 1 if dist.get_rank() == root else 1)
    print("went on")
    elastic.shutdown()


def test_a_worker_dies_with_operations_under_way(job) -> None:
    if not hasattr(dist.AllreduceOptions(), "asyncOp"):
        pytest.skip("this PyTorch does not say which operations are asynchronous")
    output = job(3, dies_with_operations_under_way, "--max-restarts", "0")
    assert output.count("went on") == 2, output
