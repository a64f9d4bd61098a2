"""horovod.torch: workers with uneven data."""

from __future__ import annotations

import os
import signal

import pytest

torch = pytest.importorskip("torch")
hvd = pytest.importorskip("horovod.torch")


def uneven_steps() -> None:
    hvd.init()
    rank, n = hvd.rank(), hvd.size()
    for step in range(rank):
        total = hvd.allreduce(torch.full((3, 2), rank + 1.0), op=hvd.Sum)
        assert (total == sum(range(step + 2, n + 1))).all()
        first, second = hvd.grouped_allreduce([torch.ones(2), torch.ones(300)])
        assert (first == (n - 1 - step) / n).all() and (second == first[0]).all()
        hvd.barrier()
        named = hvd.allreduce_async(torch.ones(5), name="named", op=hvd.Sum)
        assert (hvd.synchronize(named) == n - 1 - step).all()
    last = hvd.join()
    assert last == n - 1
    assert hvd.allgather_object(last) == [last] * n
    assert hvd.broadcast_object(rank, root_rank=last) == last
    assert (hvd.allreduce(torch.ones(1), op=hvd.Sum) == n).all()


@pytest.mark.parametrize("workers", [1, 3])
def test_the_others_go_on_without_a_worker_that_has_joined(job, workers: int) -> None:
    job(workers, uneven_steps)


def other_operations() -> None:
    hvd.init()
    rank, n = hvd.rank(), hvd.size()
    pair = hvd.add_process_set([0, 1])
    if rank > 0:
        for call in (
            lambda: hvd.allgather(torch.ones(2)),
            lambda: hvd.broadcast(torch.ones(2), 1),
            lambda: hvd.broadcast_object("x", 1),
            lambda: hvd.alltoall(torch.ones(n)),
            lambda: hvd.reducescatter(torch.ones(n)),
            lambda: hvd.add_process_set([1, 2]),
        ):
            with pytest.raises(hvd.HorovodInternalError, match="rank 0 has called join"):
                call()
    if rank == 1:
        with pytest.raises(hvd.HorovodInternalError, match="rank 0 has called join"):
            hvd.allreduce(torch.ones(2), process_set=pair)
        total = hvd.synchronize(
            hvd.allreduce_async(torch.ones(2), name="named", op=hvd.Sum, process_set=pair)
        )
        assert (total == 1).all()
    assert hvd.join() > 0
    assert len(hvd.allgather(torch.ones(2))) == 2 * n
    if rank < 2:
        assert (hvd.allreduce(torch.ones(2), op=hvd.Sum, process_set=pair) == 2).all()


def test_operations_that_need_the_data_of_all_fail_while_one_has_joined(job) -> None:
    job(3, other_operations)


def a_training_with_uneven_batches() -> None:
    hvd.init()
    rank, n = hvd.rank(), hvd.size()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    for _ in range(2):
        for batch in range(3 + rank):
            torch.manual_seed(100 * rank + batch)
            optimizer.zero_grad()
            model(torch.rand(5, 4)).square().mean().backward()
            optimizer.step()
        last = hvd.join()
        assert last == n - 1
        hvd.broadcast_parameters(model.state_dict(), root_rank=last)
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    assert (hvd.allreduce(weights, op=hvd.Max) == weights).all()


def test_trains_with_uneven_batches(job) -> None:
    job(3, a_training_with_uneven_batches)


def one_dies() -> None:
    hvd.init()
    if hvd.rank() == 1:
        hvd.allreduce(torch.ones(3))
        os.kill(os.getpid(), signal.SIGKILL)
    assert hvd.join() in (0, 1)
    assert hvd.size() == 2


def test_join_returns_when_the_last_that_has_not_joined_dies(job) -> None:
    job(3, one_dies, "--max-restarts", "0")
