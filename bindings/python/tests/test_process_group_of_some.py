"""torch.distributed.new_group: process groups of some of the members."""

from __future__ import annotations

import os
import signal

import pytest

import elastic
from conftest import Job

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")

#: In seconds: on two cores four processes take long to load PyTorch.
LOADING = 150


def collectives_of_some() -> None:
    import elastic.torch

    elastic.torch.init_process_group()
    rank, n = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group([0, 1, 2]), dist.new_group([1, 3]), dist.new_group([rank])]
    groups.append(dist.new_group())
    for group, ranks in zip(groups, ([0, 1, 2], [1, 3], [rank], list(range(n)))):
        if rank not in ranks:
            assert group == dist.GroupMember.NON_GROUP_MEMBER
            continue
        own, size = ranks.index(rank), len(ranks)
        assert (dist.get_rank(group), dist.get_world_size(group)) == (own, size)
        assert dist.get_backend(group) == "elastic"
        assert dist.get_global_rank(group, size - 1) == ranks[-1]
        total = torch.full((1000,), float(rank))
        dist.all_reduce(total, group=group)
        assert (total == sum(ranks)).all()
        work = dist.all_reduce(total, op=dist.ReduceOp.MAX, group=group, async_op=True)
        work.wait()
        assert (total == sum(ranks)).all()
        value = torch.tensor([rank])
        dist.broadcast(value, ranks[-1], group=group)  # src is a rank of the job
        assert value.item() == ranks[-1]
        total = torch.tensor([rank])
        dist.reduce(total, ranks[0], group=group)
        assert total.item() == (sum(ranks) if own == 0 else rank)
        blocks = [torch.zeros(2, dtype=torch.int64) for _ in ranks]
        dist.all_gather(blocks, torch.tensor([rank, own]), group=group)
        assert [block.tolist() for block in blocks] == [[r, at] for at, r in enumerate(ranks)]
        part = torch.zeros(1)
        dist.reduce_scatter(part, [torch.full((1,), float(at)) for at in range(size)], group=group)
        assert part.item() == own * size
        sent = torch.arange(size) + 10 * rank
        got = torch.empty_like(sent)
        dist.all_to_all_single(got, sent, group=group)
        assert got.tolist() == [own + 10 * r for r in ranks]
        there = [torch.zeros(1) for _ in ranks] if own == 0 else None
        dist.gather(torch.full((1,), float(rank)), there, ranks[0], group=group)
        assert there is None or [block.item() for block in there] == ranks
        dealt = [torch.full((1,), 5.0 * r) for r in ranks] if own == 0 else None
        dist.scatter(part, dealt, ranks[0], group=group)
        assert part.item() == 5.0 * rank
        objects = [None] * size
        dist.all_gather_object(objects, "x" * rank, group=group)
        assert objects == ["x" * r for r in ranks]
        dist.barrier(group=group)
        with pytest.raises(elastic.MismatchError):
            dist.all_reduce(torch.ones(own + 1), group=group) if size > 1 else mismatch()
    if rank in (1, 3):
        dist.destroy_process_group(groups[1])
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == n
    dist.destroy_process_group()
    elastic.shutdown()


def mismatch() -> None:
    raise elastic.MismatchError("a group of one has none")


def test_collectives_of_some(job: Job) -> None:
    job(4, collectives_of_some, timeout=LOADING)


def groups_of_pytorchs_own() -> None:
    """new_subgroups, a mesh of two axes, and plain DDP in a part of the job."""
    import elastic.torch

    elastic.torch.init_process_group()
    rank, n = dist.get_rank(), dist.get_world_size()
    own, groups = dist.new_subgroups(group_size=2)
    total = torch.full((1,), float(rank))
    dist.all_reduce(total, group=own)
    assert total.item() == 2 * (rank // 2 * 2) + 1 and len(groups) == n // 2
    half, _ = dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])
    total = torch.full((1,), float(rank))
    dist.all_reduce(total, group=half)
    assert total.item() == 2 * (rank % 2) + 2

    torch.manual_seed(3)
    inputs = torch.randn(4, 4)
    whole = torch.nn.Linear(4, 2)
    module = torch.nn.Linear(4, 2)
    module.load_state_dict(whole.state_dict())
    wrapped = torch.nn.parallel.DistributedDataParallel(module, process_group=half)
    at = dist.get_rank(half)
    wrapped(inputs[at::2]).square().mean().backward()
    whole(inputs).square().mean().backward()
    assert torch.allclose(module.weight.grad, whole.weight.grad, atol=1e-6)

    if torch.__version__ >= "2":
        from torch.distributed.device_mesh import init_device_mesh

        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        for axis, expected in (("replicate", 2 * (rank % 2) + 2), ("shard", 4 * (rank // 2) + 1)):
            total = torch.full((1,), float(rank))
            dist.all_reduce(total, group=mesh.get_group(axis))
            assert total.item() == expected, axis
        from torch.distributed.fsdp import fully_shard

        torch.manual_seed(3)
        inputs = torch.randn(4, 4)
        own_network, network = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
        own_network.load_state_dict(network.state_dict())
        fully_shard(own_network, mesh=mesh)
        own_network(inputs[rank::4]).square().mean().backward()
        network(inputs).square().mean().backward()
        gradient = own_network.weight.grad.full_tensor()
        assert torch.allclose(gradient, network.weight.grad, atol=1e-6)
    dist.destroy_process_group()
    elastic.shutdown()


def test_groups_that_pytorch_makes(job: Job) -> None:
    job(4, groups_of_pytorchs_own, timeout=LOADING)


def refusals() -> None:
    import elastic.torch

    elastic.torch.init_process_group()
    with pytest.raises(ValueError):  # PyTorch's own
        dist.new_group([0, dist.get_world_size()])
    if torch.__version__ >= "2":
        with pytest.raises(NotImplementedError, match=r"the ranks \[0, 1\], not \[1, 0\]"):
            dist.distributed_c10d._new_group_with_tag([1, 0], sort_ranks=False)
    dist.destroy_process_group()
    elastic.shutdown()


def test_refusals(job: Job) -> None:
    job(2, refusals)


def dies_in_a_group() -> None:
    """The others of its group get the right result, and the other group goes on."""
    import elastic.torch

    elastic.torch.init_process_group()
    rank, n = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group([0, 2, 4]), dist.new_group([1, 3])]
    group, size = groups[rank % 2], 3 - rank % 2
    dist.barrier()
    if rank == 2:
        dist.all_reduce(torch.ones(1 << 18), group=group, async_op=True)
        os.kill(os.getpid(), signal.SIGKILL)
    for step in range(10):
        total = torch.ones(1 << 18 if step == 0 else 100)
        dist.all_reduce(total, group=group)
        assert total[0] in ((size, size - 1) if step == 0 and rank % 2 == 0 else (2,))
        assert (total == total[0]).all()
    dist.barrier()
    assert dist.get_world_size() == n - 1
    assert (dist.get_rank(group), dist.get_world_size(group)) == (rank // 2 - (rank == 4), 2)
    value = torch.tensor([rank])
    last = dist.get_global_rank(group, 1)
    assert last == (2 if rank % 2 else 3)  # by the ranks of now
    dist.broadcast(value, last, group=group)
    assert value.item() == (3 if rank % 2 else 4)
    blocks = [torch.zeros(1) for _ in range(2)]
    dist.all_gather(blocks, torch.full((1,), float(rank)), group=group)
    assert [block.item() for block in blocks] == ([1, 3] if rank % 2 else [0, 4])
    again = dist.new_group([0, 3])  # by the ranks of now, which the first and the last worker have
    if dist.get_rank() in (0, 3):
        total = torch.ones(1)
        dist.all_reduce(total, group=again)
        assert total.item() == 2
    print("went on")
    elastic.shutdown()


def test_a_group_of_some_goes_on_when_a_worker_dies(job: Job) -> None:
    output = job(5, dies_in_a_group, "--max-restarts", "0", timeout=LOADING)
    assert output.count("went on") == 4, output
