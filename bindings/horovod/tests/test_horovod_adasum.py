"""hvd.Adasum: of an allreduce, and of the steps of an optimizer."""

from __future__ import annotations

import os
import signal

import pytest

torch = pytest.importorskip("torch")
hvd = pytest.importorskip("horovod.torch")


def adasum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Of two vectors, by the formula of Maleki and others."""
    a, b = a.double(), b.double()
    product = (a * b).sum()
    return a * (1 - product / (2 * (a * a).sum())) + b * (1 - product / (2 * (b * b).sum()))


def gradient_of(rank: int, size: int) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(rank))


def allreduces() -> None:
    hvd.init()
    rank = hvd.rank()
    own = gradient_of(rank, 100)
    expected = adasum(gradient_of(0, 100), gradient_of(1, 100))
    for total in (
        hvd.allreduce(own, op=hvd.Adasum),
        hvd.synchronize(hvd.allreduce_async(own, name="named", op=hvd.Adasum)),
        hvd.allreduce_(own.clone(), op=hvd.Adasum),
    ):
        assert torch.allclose(total.double(), expected, atol=1e-6)
    parts = hvd.grouped_allreduce(list(own.split(50)), op=hvd.Adasum)
    halves = zip(gradient_of(0, 100).split(50), gradient_of(1, 100).split(50))
    for part, (a, b) in zip(parts, halves):  # each tensor has its own weights
        assert torch.allclose(part.double(), adasum(a, b), atol=1e-6)
    with pytest.raises(ValueError):
        hvd.allreduce(torch.ones(2, dtype=torch.int32), op=hvd.Adasum)


def steps() -> None:
    """An optimizer's step is the Adasum of what the members' own steps would be."""
    hvd.init()
    n, rank = hvd.size(), hvd.rank()
    inputs = torch.randn(4 * n, 8, generator=torch.Generator().manual_seed(1))

    def model() -> torch.nn.Module:
        torch.manual_seed(3)
        return torch.nn.Linear(8, 2)

    def step(network: torch.nn.Module, optimizer: torch.optim.Optimizer, of: int) -> None:
        optimizer.zero_grad()
        network(inputs[of::n]).square().mean().backward()
        optimizer.step()

    def optimizer_of(network: torch.nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)

    start = [p.detach().clone() for p in model().parameters()]
    alone = []
    for of in range(n):
        network = model()
        step(network, optimizer_of(network), of)
        alone.append([own.detach() - first for own, first in zip(network.parameters(), start)])
    for compression, close in ((hvd.Compression.none, 1e-6), (hvd.Compression.fp16, 1e-3)):
        network = model()
        scheduled = optimizer_of(network)
        schedule = torch.optim.lr_scheduler.StepLR(scheduled, 1)
        optimizer = hvd.DistributedOptimizer(
            scheduled, network.named_parameters(), compression=compression, op=hvd.Adasum
        )
        assert optimizer is scheduled
        step(network, optimizer, rank)
        schedule.step()
        for own, first, a, b in zip(network.parameters(), start, *alone):
            assert (own - first - adasum(a, b)).abs().max() < close
    assert optimizer.step(lambda: torch.tensor(7.0)) == 7.0
    optimizer.synchronize()
    with pytest.raises(NotImplementedError, match="skip_synchronize"):
        with optimizer.skip_synchronize():
            pass
    everyone = hvd.allgather_object([p.tolist() for p in network.parameters()])
    assert everyone[0] == everyone[1]
    twice = [("a", p) for p in network.parameters()]
    with pytest.raises(ValueError, match="twice"):
        hvd.DistributedOptimizer(optimizer_of(network), twice, op=hvd.Adasum)


def everything() -> None:
    allreduces()
    steps()


def test_allreduces_and_steps(job) -> None:
    job(2, everything)


def death() -> None:
    """The step goes on with the survivors', and all have the same parameters."""
    hvd.init()
    rank = hvd.rank()
    torch.manual_seed(3)
    network = torch.nn.Linear(8, 2)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(network.parameters(), lr=0.1), network.named_parameters(), op=hvd.Adasum
    )
    for step in range(3):
        optimizer.zero_grad()
        network(torch.randn(4, 8)).square().mean().backward()
        if rank == 1 and step == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.step()
    everyone = hvd.allgather_object([p.tolist() for p in network.parameters()])
    assert len(everyone) == 2 and everyone[0] == everyone[1]
    print("survived")


def test_a_worker_dies_before_a_step(job) -> None:
    assert job(3, death, "--max-restarts", "0").count("survived") == 2
