"""elastic.torch.DistributedDataParallel: averages when backward returns, through deaths and joins."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import elastic

torch = pytest.importorskip("torch")


def the_same_everywhere(module: torch.nn.Module) -> bool:
    flat = torch.cat([tensor.detach().double().reshape(-1) for tensor in module.state_dict().values()])
    return bool((elastic.allgather(flat.reshape(1, -1)).values == flat).all())


def network() -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 2)
    )


def averages() -> None:
    import elastic.torch

    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    inputs = torch.randn(4 * n, 8, generator=torch.Generator().manual_seed(1))
    for number, options in enumerate(
        ({}, {"unit": "step"}, {"bucket_cap_mb": 0}, {"compression": "bf16"})
    ):
        torch.manual_seed(3)
        network_here = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
        model = elastic.torch.DistributedDataParallel(network_here, name=f"m{number}", **options)
        whole = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
        whole.load_state_dict(network_here.state_dict())
        close = 0.02 if "compression" in options else 1e-6
        for _ in range(2):  # gradients add up over passes, and each pass is averaged
            model(inputs[rank::n]).square().mean().backward()
            whole(inputs).square().mean().backward()
            for own, expected in zip(model.parameters(), whole.parameters()):
                assert (own.grad - expected.grad).abs().max() < close, options
        assert all(len(c) == n for c in model.contributors)
        assert len(model.contributors) == (4 if options.get("bucket_cap_mb") == 0 else 1)
    elastic.shutdown()


def test_gradients_are_averages_when_backward_returns(job) -> None:
    job(3, averages)


def special_steps() -> None:
    import elastic.torch

    elastic.init()
    n, rank = elastic.size(), elastic.rank()

    class Branches(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = torch.nn.Parameter(torch.zeros(3))
            self.sometimes = torch.nn.Parameter(torch.zeros(3))

        def forward(self, both: bool) -> torch.Tensor:
            return self.used.sum() + (self.sometimes.sum() if both else 0)

    for unit in ("bucket", "step"):
        model = elastic.torch.DistributedDataParallel(
            Branches(), unit=unit, bucket_cap_mb=0, name=unit, find_unused_parameters=True
        )
        model(rank == 0).backward()
        assert torch.allclose(model.module.used.grad, torch.ones(3))
        assert torch.allclose(model.module.sometimes.grad, torch.full((3,), 1.0 / n))

        model.zero_grad()
        with model.no_sync():
            model(True).backward()
            assert (model.module.used.grad == 1).all()
        model(True).backward()
        assert torch.allclose(model.module.sometimes.grad, torch.full((3,), 2.0))

        model.zero_grad()
        if rank == 0:
            model.contribute_nothing()
        else:
            model(True).backward()
        assert torch.allclose(model.module.used.grad, torch.full((3,), (n - 1) / n))

        model.zero_grad()
        if rank == 0:  # an exception in the middle of a backward pass, which the program handles
            fails = model.module.used * 1
            fails.register_hook(lambda gradient: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                (fails.sum() + model.module.sometimes.sum()).backward()
            model.zero_grad()
            with pytest.raises(elastic.InvalidArgumentError, match="contribute_nothing"):
                model(True)  # one gradient is on its way
            model.contribute_nothing()
        else:
            model(True).backward()
        assert torch.allclose(model.module.used.grad, torch.full((3,), (n - 1) / n))
        model.zero_grad()
        model(True).backward()
        assert torch.allclose(model.module.used.grad, torch.ones(3))
    elastic.shutdown()


def test_unused_parameters_no_sync_and_workers_without_a_batch(job) -> None:
    job(3, special_steps)


def training(die_at: int = -1, unit: str = "bucket") -> None:
    import elastic.torch

    elastic.init()
    data = torch.randn(600, 8, generator=torch.Generator().manual_seed(1))
    labels = (data[:, 0] + data[:, 1].abs() > 0.8).long()
    model = elastic.torch.DistributedDataParallel(network(), unit=unit, bucket_cap_mb=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sampler = elastic.Sampler(len(data), seed=5)
    state = elastic.torch.State(model=model, optimizer=optimizer, sampler=sampler)
    dies = os.environ["ELASTIC_RESTART"] == "0" and os.environ["RANK"] == "1"

    def in_backward(gradient: torch.Tensor) -> None:
        """The gradients of the last layer are on their way, the others are not computed yet."""
        if state.commits == die_at and dies:
            os.kill(os.getpid(), signal.SIGKILL)

    def train(state: elastic.State) -> None:
        while not sampler.finished(8) or elastic.size() < 3:
            share = sampler.next(16)
            optimizer.zero_grad()
            if len(share) < 2:  # batch normalization wants two samples
                model.contribute_nothing()
            else:
                hidden = model.module[:3](data[share])
                hidden.register_hook(in_backward)
                output = model.module[3](hidden)
                torch.nn.functional.cross_entropy(output, labels[share]).backward()
            optimizer.step()
            assert np.all([len(c) >= 1 for c in model.contributors])
            sampler.commit(model.contributors)
            state.commit()

    elastic.run(state, train)
    assert the_same_everywhere(model), "replicas differ"
    model.eval()
    accuracy = float((model(data).argmax(1) == labels).float().mean())
    assert accuracy > 0.85, accuracy
    if elastic.rank() == 0:
        print(f"done with {elastic.size()} workers")
    elastic.shutdown()


def through_a_kill_by_buckets() -> None:
    training(die_at=25)


def through_a_kill_by_steps() -> None:
    training(die_at=25, unit="step")


@pytest.mark.parametrize("body", [through_a_kill_by_buckets, through_a_kill_by_steps])
def test_trains_through_a_kill_in_backward_and_a_replacement(job, body) -> None:
    output = job(3, body, timeout=120)
    assert "done with 3 workers" in output, output
    assert "SIGKILL" in output or "signal 9" in output, output


def thaws() -> None:
    """Layers take turns: those that are frozen when the module is wrapped train later, alone."""
    import elastic.torch

    elastic.init()
    for unit in ("bucket", "step"):
        torch.manual_seed(0)
        layers = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
        layers[0].requires_grad_(False)
        model = elastic.torch.DistributedDataParallel(layers, unit=unit, name=unit)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(6):
            if step == 2:
                layers[0].requires_grad_(True)
                layers[1].requires_grad_(False)
            if step == 4:
                layers.requires_grad_(True)
            optimizer.zero_grad()
            inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(elastic.rank()))
            if step == 2 and elastic.rank() == 0:
                model.contribute_nothing()
            else:
                model(inputs).square().sum().backward()
            optimizer.step()
            assert len(model.contributors) == (1 if step < 2 or unit == "step" else 3)
        assert the_same_everywhere(model), "replicas differ"
    elastic.shutdown()


def test_parameters_that_thaw_are_averaged(job) -> None:
    job(2, thaws)


def with_buffer(buffer: torch.Tensor) -> torch.nn.Module:
    module = torch.nn.Linear(2, 2)
    module.register_buffer("extra", buffer)
    return module


def mistakes() -> None:
    import elastic.torch

    Wrapped = elastic.torch.DistributedDataParallel
    model = Wrapped(torch.nn.Linear(2, 2))
    with pytest.raises(elastic.NotInitializedError):
        model(torch.ones(1, 2)).sum().backward()
    elastic.init()
    frozen = torch.nn.Linear(2, 2)
    frozen.requires_grad_(False)
    for module, options, text in (
        (torch.nn.ReLU(), {}, "no parameter that requires a gradient"),
        (frozen, {}, "no parameter that requires a gradient"),
        (model, {}, "not wrapped yet"),
        (torch.optim.SGD, {}, "torch.nn.Module"),
        (torch.nn.Linear(2, 2), {}, "another module has the name 'module'"),
        (torch.nn.Linear(2, 2), {"name": "other", "unit": "layer"}, "'bucket' or 'step'"),
        (torch.nn.Linear(2, 2), {"name": "other", "bucket_cap_mb": -1}, "must not be negative"),
        (torch.nn.Linear(2, 2), {"name": "other", "static_graph": True}, "static_graph"),
        (with_buffer(torch.ones(2, 3).t()), {"name": "other"}, "buffer 'extra' is not contiguous"),
        (with_buffer(torch.ones(1, 3).expand(4, 3)), {"name": "other"}, "broadcast_buffers=False"),
        (with_buffer(torch.ones(2).to(torch.complex64)), {"name": "other"}, "'extra' has .*complex64"),
        (with_buffer(torch.eye(2).to_sparse()), {"name": "other"}, "'extra' is sparse"),
    ):
        with pytest.raises(elastic.InvalidArgumentError, match=text):
            Wrapped(module, **options)
    model.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    assert (model.module.weight.grad == 1).all()
    del model
    odd = with_buffer(torch.ones(2).to(torch.complex64))
    Wrapped(odd, name="odd", broadcast_buffers=False)(torch.ones(1, 2)).sum().backward()
    Wrapped(torch.nn.Linear(2, 2))  # its name is free again
    elastic.shutdown()


def test_mistakes_are_errors(job) -> None:
    job(1, mistakes)
