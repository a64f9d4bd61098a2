"""torch.distributed.send and recv, of the job and of groups."""

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


def ring(ranks: list[int], **group: object) -> None:
    """Each of the ranks, which are those of the job, sends to the next one."""
    rank = dist.get_rank()
    own = ranks.index(rank)
    following, before = ranks[(own + 1) % len(ranks)], ranks[own - 1]
    for size in (0, 1, 100_000):
        room = torch.full((size, 2), -1.0)
        coming = dist.irecv(room, before, tag=3, **group)
        dist.send(torch.full((size, 2), float(rank), requires_grad=True), following, tag=3, **group)
        coming.wait()
        assert coming.is_completed() and (room == before).all()
        sent = dist.isend(torch.tensor([rank, size]), following, **group)
        pair = torch.zeros(2, dtype=torch.int64)
        assert dist.recv(pair, before, **group) == before
        assert pair.tolist() == [before, size]
        sent.wait()


def messages() -> None:
    import elastic.torch

    elastic.torch.init_process_group()
    rank, n = dist.get_rank(), dist.get_world_size()
    ring(list(range(n)))
    groups = [dist.new_group([0, 1, 2]), dist.new_group([1, 3])]
    for group, ranks in zip(groups, ([0, 1, 2], [1, 3])):
        if rank in ranks:
            ring(ranks, group=group)
    # Tags overtake each other, and messages with one tag do not.
    if rank == 0:
        works = [dist.isend(torch.tensor([each]), 1, tag=tag) for each, tag in ((1, 0), (2, 5), (3, 0))]
        for work in works:
            work.wait()
    if rank == 1:
        number = torch.zeros(1, dtype=torch.int64)
        for tag, expected in ((5, 2), (0, 1), (0, 3)):
            dist.recv(number, 0, tag=tag)
            assert number.item() == expected
    # All at once, in other orders.
    boxes = [torch.zeros(3) for _ in range(n)]
    others = [at for at in range(n) if at != rank]
    batch = [dist.P2POp(dist.irecv, boxes[at], at) for at in reversed(others)]
    batch += [dist.P2POp(dist.isend, torch.full((3,), 10.0 * rank + at), at) for at in others]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    assert [box[0].item() for box in boxes] == [0 if at == rank else 10 * at + rank for at in range(n)]
    if hasattr(dist, "send_object_list"):
        if rank == 2:
            dist.send_object_list(["text", {"rank": rank}], 3)
        if rank == 3:
            objects = [None, None]
            assert dist.recv_object_list(objects, 2) == 2
            assert objects == ["text", {"rank": 2}]
    dist.destroy_process_group()
    elastic.shutdown()


def test_messages(job: Job) -> None:
    job(4, messages, timeout=LOADING)


def mistakes() -> None:
    import elastic.torch

    elastic.torch.init_process_group()
    rank = dist.get_rank()
    one = torch.zeros(1)
    for call in (dist.isend, dist.irecv):
        with pytest.raises(elastic.InvalidArgumentError, match="(send|recv): 2 is no rank; there are 2"):
            call(one, 2)
        with pytest.raises(elastic.InvalidArgumentError, match="is this worker itself"):
            call(one, rank)
        with pytest.raises(elastic.InvalidArgumentError, match="not contiguous"):
            call(torch.ones(4, 4).t()[1:], 1 - rank)
    with pytest.raises(NotImplementedError, match="recv: .* from a rank that is named; give src"):
        dist.recv(one)
    for size in (3, 5):
        if rank == 0:
            dist.send(torch.ones(size), 1)
        else:
            with pytest.raises(elastic.InvalidArgumentError, match=f"message .*has {size} elements"):
                dist.recv(torch.zeros(4), 0)
    with pytest.raises(elastic.MismatchError, match="f32.*i64|i64.*f32"):
        if rank == 0:
            dist.send(torch.ones(1), 1)
        else:
            dist.recv(torch.zeros(1, dtype=torch.int64), 0)
    dist.destroy_process_group()
    elastic.shutdown()


def test_mistakes(job: Job) -> None:
    job(2, mistakes, timeout=LOADING)


def dies() -> None:
    """A worker is killed from which others wait for messages, in the job and in a group."""
    import elastic.torch

    elastic.torch.init_process_group()
    rank = dist.get_rank()
    group = dist.new_group([0, 3])
    box = torch.zeros(3)
    if rank == 0:
        work = dist.irecv(box, 3, group=group)
    elif rank == 1:
        work = dist.irecv(box, 3)
    elif rank == 2:
        work = dist.isend(box, 3)
    dist.barrier()
    if rank == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(elastic.RootLostError, match="the worker with rank (3|1 of the group) is lost"):
        work.wait()
    assert dist.get_world_size() == 3
    with pytest.raises(elastic.InvalidArgumentError, match="3 is no rank; there are 3"):
        dist.isend(box, 3)
    dist.barrier()
    ring([0, 1, 2])
    print("went on")
    elastic.shutdown()


def test_the_other_worker_dies(job: Job) -> None:
    output = job(4, dies, "--max-restarts", "0", timeout=LOADING)
    assert output.count("went on") == 3, output
