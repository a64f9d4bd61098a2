"""horovod.torch: operations, gradients, and what is refused."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import tempfile
import time

import pytest

torch = pytest.importorskip("torch")
hvd = pytest.importorskip("horovod.torch")


def operations() -> None:
    hvd.init()
    n, rank = hvd.size(), hvd.rank()
    own = torch.arange(6.0).reshape(3, 2) + rank
    whole = sum(torch.arange(6.0).reshape(3, 2) + other for other in range(n))
    assert torch.equal(hvd.allreduce(own, op=hvd.Sum), whole)
    assert torch.allclose(hvd.allreduce(own), whole / n)
    assert torch.equal(hvd.allreduce(own, average=False, prescale_factor=2.0), 2 * whole)
    assert torch.equal(hvd.allreduce(own, op=hvd.Max), torch.arange(6.0).reshape(3, 2) + n - 1)
    number = torch.tensor([7 + rank])  # whole numbers are cut off once, after the scaling
    total = sum(7 + other for other in range(n))
    assert hvd.allreduce(number, postscale_factor=0.5).item() == int(total * 0.5 / n)
    in_place = own.clone()
    assert hvd.allreduce_(in_place, op=hvd.Sum) is in_place and torch.equal(in_place, whole)
    half = hvd.allreduce(own, op=hvd.Sum, compression=hvd.Compression.fp16)
    assert half.dtype == torch.float32 and torch.equal(half, whole)
    mixed = hvd.grouped_allreduce([own, number], op=hvd.Sum)
    assert torch.equal(mixed[0], whole) and mixed[1].item() == total
    rows = hvd.allgather(torch.full((rank + 1, 2), rank))
    assert rows[:, 0].tolist() == [other for other in range(n) for _ in range(other + 1)]
    assert hvd.allgather(torch.empty(rank, 0)).shape == (sum(range(n)), 0)
    assert hvd.broadcast(own, n - 1)[0, 0] == n - 1 and own[0, 0] == rank
    uneven = torch.arange(float(2 * n + 1))
    parts = hvd.allgather(hvd.reducescatter(uneven, op=hvd.Sum))
    assert torch.equal(parts, n * uneven)
    assert len(hvd.reducescatter(uneven)) == (3 if rank == 0 else 2)
    assert hvd.allgather_object({"rank": rank}) == [{"rank": other} for other in range(n)]
    assert hvd.broadcast_object(rank, root_rank=1) == 1
    sparse = torch.sparse_coo_tensor([[rank, n]], [1.0, 1.0], (n + 1,))
    rows = [2, 2] if rank == 0 else []  # one after they are coalesced, and none
    one_row = torch.sparse_coo_tensor(
        torch.tensor([rows], dtype=torch.int64), torch.ones(len(rows), 3), (4, 3)
    )
    total = hvd.synchronize(hvd.sparse_allreduce_async(one_row, op=hvd.Sum)).to_dense()
    assert total[2].tolist() == [2.0, 2.0, 2.0] and total.sum() == 6.0, total
    summed = hvd.synchronize(hvd.sparse_allreduce_async(sparse, name="s", op=hvd.Sum))
    assert torch.equal(summed.to_dense(), torch.tensor([1.0] * n + [n]))
    hvd.shutdown()
    assert not hvd.is_initialized()
    hvd.init()
    assert hvd.size() == n


def order() -> None:
    """Names in another order on each rank, and operations without names meanwhile."""
    hvd.init()
    rank, n = hvd.rank(), hvd.size()
    names = [f"t{number}" for number in range(10)]
    handles = {}
    for name in names if rank == 0 else reversed(names):
        handles[name] = hvd.allreduce_async(
            torch.full((5,), float(name[1:])), name=name, op=hvd.Sum
        )
    gathered = hvd.allgather_async(torch.tensor([rank]))
    broadcast = hvd.broadcast_async(torch.tensor([rank]), 0)
    for name in names:
        assert hvd.synchronize(handles[name])[0] == n * float(name[1:])
    assert hvd.synchronize(broadcast).item() == 0
    assert hvd.synchronize(gathered).tolist() == list(range(n))
    assert hvd.poll(gathered)
    handle = hvd.allreduce_async(torch.ones(1), name="twice")
    with pytest.raises(ValueError, match="'twice' is in use"):
        hvd.allreduce_async(torch.ones(1), name="twice")
    hvd.synchronize(handle)
    hvd.allreduce(torch.ones(1), name="twice")
    gathering = None
    if rank == 0:  # the barrier does not wait for what another rank has not begun
        gathering = hvd.allgather_async(torch.ones(1))
    hvd.barrier()
    hvd.synchronize(gathering or hvd.allgather_async(torch.ones(1)))


def gradients() -> None:
    hvd.init()
    n, rank = hvd.size(), hvd.rank()

    def gradient(call, *shape: int):
        tensor = torch.ones(shape, requires_grad=True)
        call(tensor).sum().backward()
        return tensor.grad

    assert (gradient(lambda t: hvd.allreduce(t, op=hvd.Sum), 2) == n).all()
    assert (gradient(hvd.allreduce, 2) == 1).all()
    assert (gradient(hvd.allgather, rank + 1, 2) == 1).all()
    assert (gradient(lambda t: hvd.broadcast(t, 1), 2) == (rank == 1)).all()
    assert (gradient(lambda t: hvd.reducescatter(t, op=hvd.Sum), n, 2) == n).all()
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), hvd.SyncBatchNorm(4))
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    model(torch.randn(2 + rank, 3)).square().sum().backward()
    means = hvd.allgather(model[1].running_mean.reshape(1, -1))
    assert (means == means[0]).all()


def mistakes() -> None:
    """All ranks get an error, and go on."""
    hvd.init()
    rank = hvd.rank()
    with pytest.raises(hvd.HorovodInternalError, match="different shapes"):
        hvd.allreduce(torch.ones(2, 3) if rank == 0 else torch.ones(3, 2))
    with pytest.raises(hvd.HorovodInternalError, match="different arguments"):
        hvd.broadcast(torch.ones(2), rank)
    with pytest.raises(hvd.HorovodInternalError):
        hvd.allreduce(torch.ones(2 + rank), name="named")
    for wrong, text in (
        (torch.ones(2, 3).t(), "contiguous"),
        (torch.ones(2).to_sparse(), "sparse"),
        (torch.ones(2, dtype=torch.complex64), "complex64"),
        ([1.0], "give a tensor"),
    ):
        with pytest.raises(ValueError, match=text):
            hvd.allreduce(wrong)
    with pytest.raises(ValueError, match="at least one axis"):
        hvd.reducescatter(torch.tensor(1.0))
    refused = (
        ("op=hvd.Adasum", lambda: hvd.reducescatter(torch.ones(2), op=hvd.Adasum)),
        ("hvd.init.comm", lambda: hvd.init(comm=[0])),
    )
    for name, call in refused:
        with pytest.raises(NotImplementedError, match=f"{name}.*is not in elastic-horovod"):
            call()
    for framework in ("tensorflow", "tensorflow.keras", "keras", "mxnet", "spark", "ray"):
        with pytest.raises(ImportError, match="horovod.torch alone"):
            __import__(f"horovod.{framework}")
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()


def timeline() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with pytest.raises(ValueError, match="cannot write the timeline to /no/such/trace"):
            hvd.start_timeline("/no/such/trace.json")
        hvd.start_timeline(f"{folder}/trace.json", mark_cycles=True)
        hvd.allreduce(torch.ones(1), name="traced")
        hvd.stop_timeline()
        (written,) = pathlib.Path(folder).iterdir()
        assert '"name":"horovod.allreduce.traced"' in written.read_text(encoding="utf-8")


def everything() -> None:
    operations()
    order()
    gradients()
    mistakes()
    timeline()


def test_operations_order_gradients_and_mistakes(job) -> None:
    job(2, everything)


def death() -> None:
    """A worker dies while the others wait for it; the same calls return on them."""
    hvd.init()
    hvd.barrier()
    if hvd.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    named = hvd.allreduce_async(torch.ones(4), name="gradient", op=hvd.Sum)
    gathered = hvd.allgather(torch.ones(1))
    parts = hvd.reducescatter(torch.ones(7), op=hvd.Sum)
    assert hvd.synchronize(named)[0] == 2 and hvd.size() == 2 and len(gathered) == 2
    assert len(parts) == (4 if hvd.rank() == 0 else 3) and parts[0] == 2
    print("survived")


def test_calls_return_on_survivors(job) -> None:
    assert job(3, death, "--max-restarts", "0").count("survived") == 2


class Killing:
    """Kills a process while it is pickled, and waits until the view is without it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def __reduce__(self) -> tuple[type, tuple[str]]:
        size = hvd.size()
        os.kill(self.pid, signal.SIGKILL)
        while hvd.size() == size:
            time.sleep(0.01)
        return str, ("root's",)


def roots() -> None:
    """The root stays the worker that it was when the call began."""
    hvd.init()
    worker = hvd.rank()
    if worker != 1:
        begun = hvd.broadcast_async(torch.tensor([worker]), 3)
    hvd.barrier()
    if worker == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    assert hvd.synchronize(begun).item() == 3
    pids = hvd.allgather_object(os.getpid())
    assert len(pids) == 3
    given = Killing(pids[1]) if worker == 3 else "another's"
    received = hvd.broadcast_object(given, 2)  # rank 1 is killed in it
    assert received is given if worker == 3 else received == "root's"
    with pytest.raises(ValueError, match="root 2 is no rank; there are 2"):
        hvd.broadcast(torch.ones(1), 2)
    if worker == 3:
        given = Killing(os.getpid())
    with pytest.raises(hvd.HorovodInternalError, match="the root of the broadcast is"):
        hvd.broadcast_object(given, 1)
    assert hvd.broadcast(torch.tensor(7), 0).item() == 7 and hvd.size() == 1
    print("survived")


def test_the_root_of_a_broadcast_is_a_worker(job) -> None:
    assert job(4, roots, "--max-restarts", "0").count("survived") == 1


def ends_early() -> None:
    """Worker 0 ends with operations under way, to which the other one does not come."""
    hvd.init()
    hvd.barrier()
    if hvd.rank() == 0:
        if os.environ["NAMED"] == "1":
            hvd.allreduce_async(torch.ones(2), name="mine alone")
        else:
            hvd.allgather_async(torch.ones(2))
        sys.exit(1)
    assert hvd.allreduce(torch.ones(1), name="the other's", op=hvd.Sum).item() == 1
    print("went on")


@pytest.mark.parametrize("named", ["0", "1"])
def test_a_worker_that_ends_with_operations_under_way_is_left_behind(job, named: str) -> None:
    output = job(2, ends_early, "--max-restarts", "0", NAMED=named)
    assert "went on" in output and "ended with operations under way" in output


def one_worker() -> None:
    hvd.init()
    assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.cross_size()) == (0, 1, 0, 1)
    assert hvd.allreduce(torch.ones(1)).item() == 1
    assert not hvd.mpi_enabled() and not hvd.nccl_built() and hvd.is_homogeneous()


def test_one_worker(job) -> None:
    job(1, one_worker)
