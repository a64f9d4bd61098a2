"""hvd.alltoall: blocks, splits, gradients, mistakes, and a death."""

from __future__ import annotations

import os
import signal

import pytest

torch = pytest.importorskip("torch")
hvd = pytest.importorskip("horovod.torch")


def blocks() -> None:
    hvd.init()
    n, rank = hvd.size(), hvd.rank()
    own = torch.arange(2.0 * n).reshape(n, 2) + 100 * rank
    received = hvd.alltoall(own)
    assert received.tolist() == [[100 * r + 2 * rank, 100 * r + 2 * rank + 1] for r in range(n)]
    rows, counts = hvd.alltoall(torch.full((n * (rank + 1),), rank), [rank + 1] * n)
    assert rows.tolist() == [r for r in range(n) for _ in range(r + 1)]
    assert counts.tolist() == [r + 1 for r in range(n)] and counts.dtype == torch.int32
    # Some give splits, others have equal blocks; rows beyond the splits are not sent.
    splits = torch.tensor([2] * n) if rank == 0 else None
    handle = hvd.alltoall_async(torch.full((2 * n + 3 * n * (rank == 0),), rank), splits, name="x")
    rows, counts = hvd.synchronize(handle)
    assert hvd.poll(handle) and counts.tolist() == [2] * n
    assert counts.dtype == (torch.int64 if rank == 0 else torch.int32)
    assert rows.tolist() == [r for r in range(n) for _ in range(2)]
    rows, counts = hvd.alltoall(torch.empty(sum(range(n)), 0), list(range(n)))
    assert rows.shape == (n * rank, 0) and counts.tolist() == [rank] * n


def gradients() -> None:
    hvd.init()
    n, rank = hvd.size(), hvd.rank()
    tensor = torch.ones(n, 2, requires_grad=True)
    (hvd.alltoall(tensor) * (rank + 1)).sum().backward()
    assert tensor.grad.tolist() == [[r + 1.0] * 2 for r in range(n)]
    splits = list(range(n))
    tensor = torch.ones(sum(splits) + 1, requires_grad=True)  # the last row is not sent
    rows, counts = hvd.alltoall(tensor, splits)
    assert not counts.requires_grad
    (rows * (rank + 1)).sum().backward()
    assert tensor.grad.tolist() == [r + 1.0 for r in range(n) for _ in range(r)] + [0.0]


def mistakes() -> None:
    """Where one rank is wrong all get an error, which names it, and go on."""
    hvd.init()
    n, rank = hvd.size(), hvd.rank()
    for wrong, splits, text in (
        (torch.ones(n + 1), None, "no equal blocks"),
        (torch.ones(n), [1] * (n + 1), f"{n + 1} splits for {n} members"),
        (torch.ones(n), [2] * n, "do not fit"),
        (torch.ones(n), [-1] + [1] * (n - 1), "do not fit"),
    ):
        if rank == 1:
            with pytest.raises(ValueError, match=text):
                hvd.alltoall(wrong, splits)
        else:
            with pytest.raises(hvd.HorovodInternalError, match="rank 1 gave"):
                hvd.alltoall(torch.ones(n))
    with pytest.raises(ValueError, match="do not fit"):
        hvd.alltoall(torch.ones(n, 0), [2] * n)
    with pytest.raises(hvd.HorovodInternalError):
        hvd.alltoall(torch.ones(n, 2 + rank))
    with pytest.raises(hvd.HorovodInternalError):
        hvd.alltoall(torch.ones(n, dtype=torch.float32 if rank == 0 else torch.int32))
    with pytest.raises(ValueError, match="splits are torch.float32"):
        hvd.alltoall(torch.ones(n), torch.ones(n))
    with pytest.raises(ValueError, match="whole numbers"):
        hvd.alltoall(torch.ones(n), ["a"] * n)
    with pytest.raises(ValueError, match="at least one axis"):
        hvd.alltoall(torch.tensor(1.0))
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == n


def everything() -> None:
    blocks()
    gradients()
    mistakes()


def test_blocks_gradients_and_mistakes(job) -> None:
    job(3, everything)


def one_worker() -> None:
    blocks()
    gradients()


def test_one_worker(job) -> None:
    job(1, one_worker)


def death() -> None:
    """A worker dies between the forward and the backward pass."""
    hvd.init()
    rank, n = hvd.rank(), hvd.size()
    tensor = torch.ones(n, requires_grad=True)
    received = hvd.alltoall(tensor)
    hvd.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    (received * 3).sum().backward()
    assert tensor.grad.tolist() == [3.0, 0.0, 3.0]
    splits = [1] * hvd.size()
    rows, counts = hvd.alltoall(torch.full((len(splits),), rank), splits)
    assert rows.tolist() == [0, 2] and counts.tolist() == [1, 1]
    print("survived")


def test_a_worker_dies_before_the_backward_pass(job) -> None:
    assert job(3, death, "--max-restarts", "0").count("survived") == 2
