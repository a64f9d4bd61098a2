"""elastic as a backend of torch.distributed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import types

import pytest

import elastic

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")


def collectives() -> None:
    import elastic.torch

    dist.init_process_group("elastic", init_method="elastic://", rank=-1, world_size=-1)
    rank, n = dist.get_rank(), dist.get_world_size()
    assert (rank, n) == (elastic.rank(), elastic.size())
    assert dist.get_backend() == "elastic"
    for op, expected in (("SUM", n * (n + 1) / 2), ("MAX", n), ("MIN", 1), ("AVG", (n + 1) / 2)):
        tensor = torch.full((3,), rank + 1.0)
        if hasattr(dist.ReduceOp, op):
            dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
            assert (tensor == expected).all(), op
    work = dist.all_reduce(tensor, op=dist.ReduceOp.MAX, async_op=True)
    assert work.wait() and work.is_completed()
    blocks = [torch.zeros(2, 2) for _ in range(n)]
    dist.all_gather(blocks, torch.full((2, 2), float(rank)))
    assert all((block == at).all() for at, block in enumerate(blocks))
    tensor = torch.tensor([rank, rank], dtype=torch.int16)
    dist.broadcast(tensor, 1)
    assert (tensor == 1).all()
    part = torch.zeros(2)
    dist.reduce_scatter(part, [torch.full((2,), float(at)) for at in range(n)])
    assert (part == rank * n).all()
    whole = torch.zeros(2 * n)
    dist._all_gather_base(whole, torch.full((2,), float(rank)))
    assert (whole.view(n, 2)[:, 0] == torch.arange(n)).all()
    dist._reduce_scatter_base(part, torch.arange(2.0 * n))
    assert (part == torch.tensor([2.0 * rank, 2.0 * rank + 1]) * n).all()
    several = [torch.ones(2), torch.ones(3)]
    dist.all_reduce_coalesced(several)
    assert all((tensor == n).all() for tensor in several)
    objects = [None] * n
    dist.all_gather_object(objects, {"rank": rank, "text": "y" * rank})
    assert objects == [{"rank": at, "text": "y" * at} for at in range(n)]
    given = [rank, "text"] if rank == 0 else [None, None]
    dist.broadcast_object_list(given, 0)
    assert given == [0, "text"]
    dist.barrier()

    with pytest.raises(elastic.InvalidArgumentError, match=f"root {n} is no rank; there are {n}"):
        dist.broadcast(tensor, n)
    with pytest.raises(elastic.MismatchError, match="different roots, or tensors of different"):
        dist.broadcast(tensor, 0 if rank == 0 else 1)
    with pytest.raises((ValueError, RuntimeError), match="monitored_barrier"):  # PyTorch's own
        dist.monitored_barrier()
    bits = torch.full((1,), 1 << rank)
    dist.all_reduce(bits, op=dist.ReduceOp.BXOR)
    assert bits == (1 << n) - 1
    with pytest.raises(NotImplementedError, match="no reduction NORM"):
        elastic.torch.process_group._operation(types.SimpleNamespace(reduceOp="NORM"))
    with pytest.raises(elastic.InvalidArgumentError, match=rf"{n} contributed"):
        dist.all_gather([torch.zeros(1)] * (n + 1), torch.zeros(1))
    with pytest.raises(elastic.InvalidArgumentError, match="contiguous"):
        dist.all_reduce(torch.ones(4, 4).t()[1:])
    dist.destroy_process_group()
    elastic.torch.init_process_group()  # the worker has joined the job already
    dist.all_reduce(whole)
    dist.destroy_process_group()
    elastic.shutdown()


def test_collectives(job) -> None:
    job(3, collectives)


def network() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def pytorchs_own_wrappers() -> None:
    """Plain DDP, ZeRO and FSDP end with the parameters of a training in one process."""
    import elastic.torch

    elastic.torch.init_process_group()
    rank, n = dist.get_rank(), dist.get_world_size()
    inputs = torch.randn(4 * n, 4, generator=torch.Generator().manual_seed(1))

    def trained(module: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
        for _ in range(4):
            optimizer.zero_grad()
            module(x).square().mean().backward()
            optimizer.step()

    def expect_like(module: torch.nn.Module, parameters: list[torch.Tensor]) -> None:
        for own, expected in zip(parameters, module.parameters()):
            assert torch.allclose(own, expected, atol=1e-5)

    whole = network()
    trained(whole, torch.optim.Adam(whole.parameters(), lr=0.01), inputs)

    own = torch.nn.parallel.DistributedDataParallel(network())
    trained(own, torch.optim.Adam(own.parameters(), lr=0.01), inputs[rank::n])
    expect_like(whole, list(own.parameters()))

    from torch.distributed.optim import ZeroRedundancyOptimizer

    own = torch.nn.parallel.DistributedDataParallel(network())
    trained(own, ZeroRedundancyOptimizer(own.parameters(), torch.optim.Adam, lr=0.01), inputs[rank::n])
    expect_like(whole, list(own.parameters()))

    if torch.__version__ >= "2":  # 1.13's does not load under Python 3.11
        from torch.distributed.fsdp import FullyShardedDataParallel

        own = FullyShardedDataParallel(network(), device_id=torch.device("cpu"))
        trained(own, torch.optim.Adam(own.parameters(), lr=0.01), inputs[rank::n])
        with FullyShardedDataParallel.summon_full_params(own):
            expect_like(whole, list(own.parameters()))
        from torch.distributed.fsdp import fully_shard

        own = network()
        fully_shard(own)
        trained(own, torch.optim.Adam(own.parameters(), lr=0.01), inputs[rank::n])
        expect_like(whole, [parameter.full_tensor() for parameter in own.parameters()])
    dist.destroy_process_group()
    elastic.shutdown()


def test_pytorchs_own_wrappers_in_a_job_of_fixed_size(job) -> None:
    job(2, pytorchs_own_wrappers)


def size_changes() -> None:
    import elastic.torch

    elastic.torch.init_process_group()
    before = dist.get_world_size()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    tensor = torch.ones(1000)
    dist.all_reduce(tensor)  # the same call returns the sum of those left
    assert (tensor == before - 1).all()
    assert dist.get_world_size() == before - 1
    with pytest.raises(elastic.InvalidArgumentError, match="the members have changed"):
        dist.all_gather([torch.zeros(1) for _ in range(before)], torch.ones(1))
    blocks = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(blocks, torch.full((1,), float(dist.get_rank())))
    assert [block.item() for block in blocks] == list(range(before - 1))
    print("went on")
    elastic.shutdown()


def test_a_group_goes_on_when_a_worker_dies(job) -> None:
    output = job(3, size_changes, "--max-restarts", "0")
    assert output.count("went on") == 2, output


def wait_for_size(size: int) -> None:
    """Without asking the process group, which then means other workers by its numbers."""
    deadline = time.monotonic() + 30
    while elastic.size() != size:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def objects_through_a_death() -> None:
    """Rank 0 dies between the two broadcasts that PyTorch makes of an object."""
    import elastic.torch
    from elastic.torch.process_group import ProcessGroup

    elastic.torch.init_process_group()
    rank = dist.get_rank()
    broadcast = ProcessGroup.broadcast
    calls = 0

    def dies_between(self: ProcessGroup, *arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 2 and rank == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if calls == 2:
            wait_for_size(3)
        return broadcast(self, *arguments)

    ProcessGroup.broadcast = dies_between
    given = ["right" * 50 if rank == 1 else None]
    dist.broadcast_object_list(given, 1)
    assert given == ["right" * 50]
    ProcessGroup.broadcast = broadcast
    given = [dist.get_rank()]
    dist.broadcast_object_list(given, 2)
    assert given == [2]
    print("has the object")
    elastic.shutdown()


def test_the_root_of_a_broadcast_stays_the_same_worker(job) -> None:
    output = job(4, objects_through_a_death, "--max-restarts", "0")
    assert output.count("has the object") == 3, output


def lost_last_rank() -> None:
    """Rank 0 knows that there are three; for the others the root is a worker that is lost."""
    import elastic.torch

    elastic.torch.init_process_group()
    rank = dist.get_rank()
    dist.barrier()
    if rank == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_size(3)
    if rank == 0:
        assert dist.get_world_size() == 3
    with pytest.raises(elastic.MismatchError, match="call again, by the present numbers"):
        dist.broadcast(torch.ones(2), 3)
    with pytest.raises(elastic.InvalidArgumentError, match="root 3 is no rank; there are 3"):
        dist.broadcast(torch.ones(2), 3)
    print("all alike")
    elastic.shutdown()


def test_a_lost_root_that_is_no_rank_for_others_is_an_error_on_all(job) -> None:
    output = job(4, lost_last_rank, "--max-restarts", "0")
    assert output.count("all alike") == 3, output


def group_of_a_replacement() -> None:
    import elastic.torch

    elastic.torch.init_process_group()
    first = os.environ["ELASTIC_RESTART"] == "0"
    assert first or dist.get_rank() == -1
    state = elastic.torch.State(sum=torch.zeros(1), step=0)

    def train(state: elastic.torch.State) -> None:
        while state.step < 5 or dist.get_world_size() < 2:
            if state.step == 3 and first and os.environ["RANK"] == "1":
                os.kill(os.getpid(), signal.SIGKILL)
            one = torch.ones(1)
            dist.all_reduce(one)
            state.step += 1
            state.commit()

    elastic.torch.run(state, train)
    assert dist.get_rank() == elastic.rank()
    print("trained")
    elastic.shutdown()


def test_a_replacement_makes_the_group_before_it_is_a_member(job) -> None:
    assert job(2, group_of_a_replacement).count("trained") == 2


def root_dies() -> None:
    import elastic.torch

    elastic.torch.init_process_group()
    rank = dist.get_rank()
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_size(2)
    tensor = torch.full((3,), float(rank))
    with pytest.raises(elastic.RootLostError, match="call again, by the present numbers"):
        dist.broadcast(tensor, 0)
    assert (tensor == rank).all()
    dist.broadcast(tensor, 0)
    assert (tensor == 1).all()
    print("went on")
    elastic.shutdown()


def test_a_lost_root_is_an_error_on_all(job) -> None:
    output = job(3, root_dies, "--max-restarts", "0")
    assert output.count("went on") == 2, output


def sizes_of_two_memberships() -> None:
    """One asks for the size before a death, and the other one after it."""
    import elastic.torch

    elastic.torch.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_size(2)
    if rank == 2:
        size = dist.get_world_size()
    for gather in (
        lambda: dist.all_gather([torch.zeros(2) for _ in range(size)], torch.ones(2)),
        lambda: dist._all_gather_base(torch.zeros(2 * size), torch.ones(2)),
        lambda: dist.reduce_scatter(torch.zeros(2), [torch.ones(2) for _ in range(size)]),
    ):
        with pytest.raises(elastic.MismatchError):
            gather()
    blocks = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(blocks, torch.full((1,), float(dist.get_rank())))
    assert [block.item() for block in blocks] == [0, 1]
    print("went on")
    elastic.shutdown()


def test_tensors_for_different_sizes_are_an_error_on_all(job) -> None:
    output = job(3, sizes_of_two_memberships, "--max-restarts", "0")
    assert output.count("went on") == 2, output


def destroyed() -> None:
    import elastic.torch

    elastic.torch.init_process_group()
    dist.all_reduce(torch.ones(3))
    dist.destroy_process_group()


def test_a_program_may_end_by_destroying_the_group(job) -> None:
    output = job(2, destroyed)
    assert "in the middle of the job" not in output, output


def destroyed_and_shut_down() -> None:
    destroyed()
    elastic.shutdown()


def test_a_program_may_leave_the_job_after_destroying_the_group(job) -> None:
    output = job(2, destroyed_and_shut_down)
    assert "Exception" not in output and "Error" not in output, output


def test_under_torchrun_it_says_what_to_do() -> None:
    """torchrun's variables say that there are other workers, and nothing of a server."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ELASTIC_")
    }
    done = subprocess.run(
        [sys.executable, "-c", "import elastic.torch; elastic.torch.init_process_group()"],
        env={
            **environment,
            "RANK": "0",
            "WORLD_SIZE": "2",
            "LOCAL_RANK": "0",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert "WORLD_SIZE is 2 but ELASTIC_RENDEZVOUS is not set" in done.stderr, done.stderr
    assert "elasticrun" in done.stderr
