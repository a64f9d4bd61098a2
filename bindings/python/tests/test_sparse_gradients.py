"""Sparse gradients that some members lack, and a gradient that is computed again."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import elastic  # noqa: E402


def the_same_everywhere(tensor: torch.Tensor) -> bool:
    return bool((elastic.allgather(tensor.detach().reshape(1, -1)).values == tensor.reshape(-1)).all())


def by_optimizer() -> None:
    import elastic.torch

    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    for groups in (None, 1):
        table = torch.nn.Embedding(10, 4, sparse=True)
        torch.nn.init.zeros_(table.weight)
        bias = torch.nn.Parameter(torch.zeros(4))
        prefix = f"{groups}."
        optimizer = elastic.torch.DistributedOptimizer(
            torch.optim.SGD([table.weight, bias], lr=1.0),
            [(prefix + "table", table.weight), (prefix + "bias", bias)],
            groups=groups,
        )
        # The last member has no batch in the first step, and the first one none in the second. All
        # lookups of the others are of one row, or of two.
        for without, rows in ((n - 1, [2, 2, 2]), (0, [2, 3]), (-1, [3])):
            optimizer.zero_grad(set_to_none=groups is None)
            if rank != without:
                (table(torch.tensor(rows)).sum() + bias.sum()).backward()
            optimizer.step()
            assert the_same_everywhere(table.weight) and the_same_everywhere(bias)
        part = (n - 1) / n
        assert torch.allclose(table.weight[2], torch.full((4,), -3 * part - part)), table.weight
        assert torch.allclose(table.weight[3], torch.full((4,), -part - 1)), table.weight
        assert torch.allclose(bias, torch.full((4,), -2 * part - 1)), bias
    elastic.shutdown()


def test_members_without_a_sparse_gradient(job) -> None:
    job(3, by_optimizer)


def by_module() -> None:
    import elastic.torch

    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    torch.manual_seed(7)
    for unit in ("bucket", "step"):
        table = torch.nn.Embedding(6, 3, sparse=True)
        model = elastic.torch.DistributedDataParallel(table, unit=unit, name=unit)
        for without in (0, n - 1):
            table.weight.grad = None
            if rank == without:
                model.contribute_nothing()
            else:
                model(torch.tensor([1])).sum().backward()
            expected = torch.zeros(6, 3)
            expected[1] = (n - 1) / n
            assert torch.allclose(table.weight.grad.to_dense(), expected), table.weight.grad
    elastic.shutdown()


def test_members_without_a_batch_and_a_sparse_module(job) -> None:
    job(3, by_module)


def again() -> None:
    import elastic.torch

    elastic.init()
    weight = torch.nn.Parameter(torch.zeros(200_000))
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.SGD([weight], lr=1.0), [("weight", weight)]
    )
    for step in range(1, 6):
        optimizer.zero_grad()
        weight.sum().backward()
        if elastic.rank() == 0:
            with pytest.raises(elastic.InvalidArgumentError, match="computed again"):
                weight.sum().backward()
        optimizer.step()
        assert (weight == -step).all(), weight  # the gradient of the first pass alone
    elastic.shutdown()


def test_a_refused_backward_pass_changes_no_gradient(job) -> None:
    job(2, again)
