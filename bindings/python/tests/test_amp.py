"""elastic.torch with autocast: steps that overflow on one worker are skipped on all of them."""

from __future__ import annotations

import math
import os
import signal

import pytest

import elastic

torch = pytest.importorskip("torch")

scales_on_a_cpu = pytest.mark.skipif(
    not hasattr(torch.amp, "GradScaler"), reason="PyTorch before 2.3 scales on CUDA devices only"
)


def alike(values: torch.Tensor) -> bool:
    gathered = elastic.allgather(values.detach().double().reshape(1, -1)).values
    return bool((gathered == gathered[0]).all())


def flat(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def network() -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))


def autocast() -> None:
    """With bfloat16 no losses have to be scaled."""
    import elastic.torch

    elastic.init()
    data = torch.randn(400, 8, generator=torch.Generator().manual_seed(1))
    labels = (data[:, 0] + data[:, 1].abs() > 0.8).long()
    model = network()
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=0.02), model.named_parameters()
    )
    for step in range(60):
        share = torch.arange(elastic.rank(), 400, elastic.size())[step % 5 :: 5]
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(data[share])
            assert output.dtype == torch.bfloat16
            loss = torch.nn.functional.cross_entropy(output.float(), labels[share])
        loss.backward()
        optimizer.step()
    assert alike(flat(model))
    accuracy = float((model(data).argmax(1) == labels).float().mean())
    assert accuracy > 0.85, accuracy
    elastic.shutdown()


def test_autocast(job) -> None:
    job(2, autocast)


def overflows() -> None:
    """Rank 1 overflows in step 2, rank 0 has no batch in the first step and in step 3."""
    import elastic.torch

    elastic.init()
    rank = elastic.rank()
    inputs = torch.randn(4, 8, generator=torch.Generator().manual_seed(rank))
    for kind in ("optimizer", "grouped", "clipped", "fused", "module"):
        model = network()
        named = [(f"{kind}.{name}", parameter) for name, parameter in model.named_parameters()]
        fused = {"fused": True} if kind == "fused" else {}
        own = torch.optim.Adam(model.parameters(), lr=0.01, **fused)
        if kind == "module":
            wrapped = elastic.torch.DistributedDataParallel(model, name=kind)
            optimizer = own
        else:
            wrapped = model
            groups = {"groups": 1} if kind == "grouped" else {}
            optimizer = elastic.torch.DistributedOptimizer(own, named, **groups)
        scaler = elastic.torch.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
        scales = []
        for step in range(5):
            before = flat(model).clone()
            optimizer.zero_grad()
            if rank == 0 and step in (0, 3):
                if kind == "module":
                    wrapped.contribute_nothing()
            else:
                loss = wrapped(inputs).square().mean()
                if rank == 1 and step == 2:
                    loss = loss * math.inf
                scaler.scale(loss).backward()
            if kind == "clipped":
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
                norms = [float(parameter.grad.norm()) for parameter in model.parameters()]
                assert step == 2 or math.hypot(*norms) < 1.01e-3, norms
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
            assert (flat(model) == before).all() == (step == 2), (kind, step)
            assert alike(flat(model)), (kind, step)
        # It grows after two steps, is halved by the overflow, and grows again.
        assert scales == [1024.0, 2048.0, 1024.0, 1024.0, 2048.0], (kind, scales)
    elastic.shutdown()


@scales_on_a_cpu
def test_an_overflow_on_one_worker_skips_the_step_on_all(job) -> None:
    job(3, overflows, timeout=120)


def unscaled_average() -> None:
    """Scaled gradients have the same average as those of a training in one process."""
    import elastic.torch

    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    inputs = torch.randn(4 * n, 8, generator=torch.Generator().manual_seed(1))
    model, whole = network(), network()
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters()
    )
    scaler = elastic.torch.GradScaler("cpu", init_scale=256.0)
    scaler.scale(model(inputs[rank::n]).square().mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    whole(inputs).square().mean().backward()
    torch.optim.SGD(whole.parameters(), lr=0.1).step()
    assert (flat(model) - flat(whole)).abs().max() < 1e-6
    elastic.shutdown()


@scales_on_a_cpu
def test_averages_are_those_of_gradients_that_were_not_scaled(job) -> None:
    job(3, unscaled_average)


def joins_with_scaler() -> None:
    """A worker that takes a dead one's place has the scale of the others, which has changed."""
    import elastic.torch

    elastic.init()
    model = network()
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters()
    )
    # It grows little, as nothing says how many steps are made before the joiner comes.
    scaler = elastic.torch.GradScaler("cpu", init_scale=8.0, growth_factor=1.001, growth_interval=5)
    state = elastic.torch.State(model=model, optimizer=optimizer, scaler=scaler, complete=0)
    dies = os.environ["ELASTIC_RESTART"] == "0" and os.environ["RANK"] == "1"

    def train(state: elastic.State) -> None:
        while state.commits < 20 or state.complete < 8:
            optimizer.zero_grad()
            scaler.scale(model(torch.ones(2, 8)).square().mean()).backward()
            if state.commits == 12 and dies:
                os.kill(os.getpid(), signal.SIGKILL)
            scaler.step(optimizer)
            scaler.update()
            assert alike(torch.tensor([scaler.get_scale()]))
            workers = min(len(each) for each in optimizer.contributors)
            state.complete = state.complete + 1 if workers == 3 else 0
            state.commit()

    elastic.run(state, train)
    assert scaler.get_scale() > 8.0 and alike(flat(model))
    print("the same scale", flush=True)
    elastic.shutdown()


@scales_on_a_cpu
def test_a_joiner_has_the_scale_of_the_members(job) -> None:
    output = job(3, joins_with_scaler, timeout=120)
    assert output.count("the same scale") == 3, output


def not_finite(policy: str) -> None:
    """Without a scaler: the option non_finite holds for the optimizer's averages."""
    import elastic.torch

    elastic.init(non_finite=policy)
    rank = elastic.rank()
    for kind, options in (("each", {}), ("one", {"groups": 1}), ("half", {"compression": "fp16"})):
        model = network()
        named = [(f"{kind}.{name}", parameter) for name, parameter in model.named_parameters()]
        optimizer = elastic.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), named, **options
        )
        for step in range(4):
            before = flat(model).clone()
            optimizer.zero_grad()
            loss = model(torch.ones(2, 8)).square().mean()
            if rank == 1 and step == 2:
                # The halves overflow only on their way.
                loss = loss * (1e8 if kind == "half" else math.nan)
            loss.backward()
            if policy == "error" and step == 2:
                with pytest.raises(elastic.NotFiniteError, match=f"{kind}.0.weight") as raised:
                    optimizer.step()
                assert raised.value.peer == 1
            else:
                optimizer.step()
                assert optimizer.finite == (step != 2)
            assert (flat(model) == before).all() == (step == 2), (kind, step)
            assert alike(flat(model))
    module = elastic.torch.DistributedDataParallel(network())
    loss = module(torch.ones(2, 8)).square().mean() * (math.inf if rank == 1 else 1)
    if policy == "error":
        with pytest.raises(elastic.NotFiniteError, match="2.bias"):
            loss.backward()
    else:
        loss.backward()
        assert not module.finite
    module.zero_grad()
    module(torch.ones(2, 8)).square().mean().backward()
    assert module.finite and alike(torch.cat([p.grad.reshape(-1) for p in module.parameters()]))
    elastic.shutdown()


def skips_what_is_not_finite() -> None:
    not_finite("skip")


def fails_for_what_is_not_finite() -> None:
    not_finite("error")


@pytest.mark.parametrize("body", [skips_what_is_not_finite, fails_for_what_is_not_finite])
def test_the_option_non_finite_holds_for_averages(job, body) -> None:
    job(3, body, timeout=120)
