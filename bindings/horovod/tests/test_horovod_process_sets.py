"""horovod.torch: process sets."""

from __future__ import annotations

import os
import signal

import pytest

torch = pytest.importorskip("torch")
hvd = pytest.importorskip("horovod.torch")


def operations_in_a_set() -> None:
    rank, n = hvd.rank(), hvd.size()
    even, odd = hvd.add_process_set(range(0, n, 2)), hvd.add_process_set(list(range(1, n, 2)))
    own, other = (even, odd) if rank % 2 == 0 else (odd, even)
    ranks = list(range(rank % 2, n, 2))
    at, size = ranks.index(rank), len(ranks)
    assert (own.ranks, own.rank(), own.size(), own.included()) == (ranks, at, size, True)
    assert not other.included() and other.size() == n - size
    with pytest.raises(ValueError, match="is no member of hvd.ProcessSet.process_set_id="):
        other.rank()
    with pytest.raises(ValueError, match=f"this worker, rank {rank}, is no member"):
        hvd.allreduce(torch.ones(1), process_set=other)
    value = torch.full((3, 2), float(rank), requires_grad=True)
    total = hvd.allreduce(value, op=hvd.Sum, process_set=own)
    total.sum().backward()
    assert (total == sum(ranks)).all() and (value.grad == size).all()
    assert (hvd.allreduce(value, name="same", process_set=own) == sum(ranks) / size).all()
    first, second = hvd.grouped_allreduce([value, 2 * value], op=hvd.Max, process_set=own)
    assert (first == ranks[-1]).all() and (second == 2 * ranks[-1]).all()
    rows = hvd.allgather(torch.full((at + 1, 2), rank), process_set=own)
    assert rows[:, 0].tolist() == [r for place, r in enumerate(ranks) for _ in range(place + 1)]
    value.grad = None
    copied = hvd.broadcast(value, ranks[-1], process_set=own)  # the root is a rank of the job
    copied.sum().backward()
    assert (copied == ranks[-1]).all() and (value.grad == float(at == size - 1)).all()
    with pytest.raises(hvd.HorovodInternalError, match="is no member of hvd.ProcessSet"):
        hvd.broadcast(value, other.ranks[0], process_set=own)
    given, splits = hvd.alltoall(torch.arange(size) + 10 * rank, [1] * size, process_set=own)
    assert given.tolist() == [10 * r + at for r in ranks] and splits.tolist() == [1] * size
    part = hvd.reducescatter(torch.arange(float(size)), op=hvd.Sum, process_set=own)
    assert part.tolist() == [float(size * at)]
    sparse = torch.sparse_coo_tensor([[rank]], [1.0], (n,))
    summed = hvd.synchronize(hvd.sparse_allreduce_async(sparse, op=hvd.Sum, process_set=own))
    assert summed.to_dense().nonzero().flatten().tolist() == ranks
    assert hvd.broadcast_object([rank], root_rank=ranks[0], process_set=own) == [ranks[0]]
    hvd.barrier(process_set=own)
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == n
    assert hvd.remove_process_set(odd) and hvd.remove_process_set(even)


def numbers_and_mistakes() -> None:
    rank, n = hvd.rank(), hvd.size()
    assert hvd.global_process_set.process_set_id == 0
    assert hvd.global_process_set.ranks == list(range(n)) and hvd.global_process_set.size() == n
    first, last = hvd.ProcessSet([0]), hvd.ProcessSet(range(n - 1, 0, -1))
    assert (first.process_set_id, first.size(), first.rank()) == (None, None, None)
    assert first.included() == (rank == 0) and last.ranks == list(range(1, n))
    with pytest.raises(ValueError, match="is not known: give it to hvd.add_process_set"):
        hvd.allreduce(torch.ones(1), process_set=first)
    assert hvd.add_process_set(first) is first and first.process_set_id == 1
    assert hvd.add_process_set(last).process_set_id == 2
    for wrong, text in (
        ([0], "a process set of the ranks .0. already"),
        (range(n), "already"),  # the global one
        (first, "is there already"),
        ([0, n], f"are not all ranks; there are {n}"),
        ([], "are not all ranks"),
        ([1, 1], "there twice"),
        ([0.5], "a list of ranks"),
        (object(), "communicators of MPI are not taken"),
    ):
        with pytest.raises(ValueError, match=text):
            hvd.add_process_set(wrong)
    with pytest.raises(hvd.HorovodInternalError, match="gave different ranks"):
        hvd.add_process_set([0, 1] if rank == 0 else [0, 2])
    with pytest.raises(ValueError, match="give an hvd.ProcessSet"):
        hvd.allreduce(torch.ones(1), process_set=object())
    assert hvd.remove_process_set(first) and first.process_set_id is None
    assert not hvd.remove_process_set(first)
    assert not hvd.remove_process_set(hvd.global_process_set)
    assert hvd.add_process_set([0]).process_set_id == 1  # the number is free again
    hvd.shutdown()
    assert last.process_set_id is None
    with pytest.raises(ValueError, match="already"):
        hvd.init(process_sets=[hvd.ProcessSet([1, 2]), hvd.ProcessSet([2, 1])])
    sets = [hvd.ProcessSet([1, 2]), hvd.ProcessSet([0, 2])]
    hvd.init(process_sets=sets)
    assert [each.process_set_id for each in sets] == [1, 2]
    assert all(hvd.remove_process_set(each) for each in sets)


def any_order() -> None:
    """Operations of three sets, in an order in which each worker waits for another."""
    rank = hvd.rank()
    sets = [hvd.add_process_set(ranks) for ranks in ([0, 1], [1, 2], [2, 3], [0, 3])]
    own = [each for each in sets if each.included()]
    for step in range(10):
        order = own if rank % 2 == 0 else own[::-1]
        handles = [hvd.allgather_async(torch.tensor([rank]), process_set=each) for each in order]
        named = [
            hvd.allreduce_async(torch.ones(3), name="n", op=hvd.Sum, process_set=each)
            for each in order[:: 1 if step % 2 else -1]
        ]
        assert [hvd.synchronize(h).tolist() for h in handles] == [each.ranks for each in order]
        assert all(hvd.synchronize(h).tolist() == [2, 2, 2] for h in named)
    for each in sets:
        hvd.remove_process_set(each)


def optimizers() -> None:
    """Gradients of a set are averaged in it, and others keep their own."""
    rank = hvd.rank()
    pair = hvd.add_process_set([0, 2])
    for op in (hvd.Average, hvd.Adasum):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1)
        start = [parameter.detach().clone() for parameter in model.parameters()]
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.5),
            named_parameters=model.named_parameters(),
            op=op,
            process_set=pair,
        )
        optimizer.zero_grad()
        (model(torch.ones(2, 3)).sum() * (rank + 1)).backward()
        optimizer.step()
        moved = [float((before - after)[0].mean()) for before, after in zip(start, model.parameters())]
        if pair.included():
            averages = {hvd.Average: 2.0, hvd.Adasum: 3.0 - 1.0}  # of parallel steps
            assert moved == pytest.approx([averages[op]] * 2, rel=1e-4), (op, moved)
        else:
            assert moved == pytest.approx([rank + 1.0] * 2), (op, moved)
    hvd.remove_process_set(pair)


def everything() -> None:
    hvd.init()
    numbers_and_mistakes()
    operations_in_a_set()
    any_order()
    optimizers()


def test_process_sets(job) -> None:
    job(4, everything, timeout=150)  # on two cores four processes take long to load PyTorch


def death() -> None:
    """A set goes on without a worker that dies, and ranks are those of the moment."""
    hvd.init()
    rank = hvd.rank()
    even, odd = hvd.add_process_set([0, 2, 4]), hvd.add_process_set([1, 3])
    own = even if rank % 2 == 0 else odd
    hvd.barrier()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    total = hvd.allreduce(torch.ones(100), op=hvd.Sum, name="first", process_set=own)
    assert total[0].item() == 2
    rows = hvd.allgather(torch.tensor([rank]), process_set=own)
    assert rows.tolist() == ([1, 3] if rank % 2 else [0, 4])
    hvd.barrier()
    assert (even.ranks, odd.ranks) == ([0, 3], [1, 2])
    assert own.size() == 2 and own.rank() == rows.tolist().index(rank)
    value = hvd.broadcast(torch.tensor([rank]), own.ranks[1], process_set=own)
    assert value.item() == (3 if rank % 2 else 4)
    print("survived")


def test_a_set_goes_on_without_a_worker_that_dies(job) -> None:
    output = job(5, death, "--max-restarts", "0", timeout=150)
    assert output.count("survived") == 4, output


def replaced() -> None:
    """After a worker was replaced no set is known, and all add theirs again."""
    hvd.init()
    known = []

    @hvd.elastic.run
    def train(state: hvd.elastic.ObjectState) -> None:
        while hvd.size() < 3:
            state.commit()  # until the new worker is there
        for each in known:
            assert each.process_set_id is None
        pair = hvd.add_process_set([0, hvd.size() - 1])
        known.append(pair)
        while state.step < 10:
            if pair.included():
                total = hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=pair)
                assert total.item() in (1, 2)
            if state.step == 5 and hvd.rank() == 1 and os.environ["ELASTIC_RESTART"] == "0":
                os.kill(os.getpid(), signal.SIGKILL)
            state.step += 1
            state.commit()

    state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=0)
    train(state)
    print("trained")


def test_sets_are_added_again_after_a_replacement(job) -> None:
    output = job(3, replaced, timeout=150)
    assert output.count("trained") == 3, output
