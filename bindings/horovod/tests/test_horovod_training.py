"""hvd.DistributedOptimizer, and the parameters and states that are sent."""

from __future__ import annotations

import subprocess
import warnings

import pytest

torch = pytest.importorskip("torch")
hvd = pytest.importorskip("horovod.torch")

from conftest import LAUNCHER  # noqa: E402

import elastic  # noqa: E402


def wrapped(model: torch.nn.Module, **options):
    return hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), **options
    )


class Eighth(hvd.compression.Compressor):
    """A compressor of the script's own: eighths travel, as float64."""

    @staticmethod
    def compress(tensor):
        return tensor.double() / 8, tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        return (tensor * 8).to(ctx)


def steps() -> None:
    """One step has the gradient of the whole batch."""
    hvd.init()
    n, rank = hvd.size(), hvd.rank()
    inputs = torch.randn(4 * n, 8, generator=torch.Generator().manual_seed(1))
    for options in (
        {},
        {"groups": 1},
        {"op": hvd.Sum},
        {"gradient_predivide_factor": 4.0},
        {"backward_passes_per_step": 2},
        {"compression": hvd.Compression.fp16},
        {"compression": Eighth},
    ):
        torch.manual_seed(3)
        model = torch.nn.Linear(8, 2)
        whole = torch.nn.Linear(8, 2)
        whole.load_state_dict(model.state_dict())
        optimizer = wrapped(model, **options)
        passes = options.get("backward_passes_per_step", 1)
        for _ in range(passes):
            model(inputs[rank::n]).square().mean().backward()
        optimizer.step()
        factor = passes * (n if options.get("op") is hvd.Sum else 1)
        (factor * whole(inputs).square().mean()).backward()
        torch.optim.SGD(whole.parameters(), lr=0.1).step()
        close = 1e-3 if "compression" in options else 1e-6
        for own, expected in zip(model.parameters(), whole.parameters()):
            assert (own - expected).abs().max() < close, options


def clipping_and_mistakes() -> None:
    hvd.init()
    model = torch.nn.Linear(2, 1)
    optimizer = wrapped(model)
    model(torch.ones(1, 2)).sum().backward()
    with pytest.raises(AssertionError, match="zero_grad"):
        optimizer.zero_grad()
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    with optimizer.skip_synchronize(), warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.synchronize()
    with pytest.warns(UserWarning, match="skip_synchronize"):
        optimizer.step()
    optimizer.set_backward_passes_per_step(2)
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    for options, kind in (
        ({"op": hvd.Adasum, "gradient_predivide_factor": 2.0}, ValueError),
        ({"op": hvd.Adasum, "compression": object()}, ValueError),
        ({"op": hvd.Max}, ValueError),
        ({"compression": object()}, ValueError),
        ({"backward_passes_per_step": 0}, ValueError),
    ):
        with pytest.raises(kind):
            wrapped(torch.nn.Linear(1, 1), **options)


def states() -> None:
    """After them all ranks have what rank 1 had, also in an optimizer that has made no step."""
    hvd.init()
    rank = hvd.rank()
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1 * (rank + 1))
    if rank == 1:
        model(torch.randn(4, 3)).square().sum().backward()
        optimizer.step()
    hvd.broadcast_parameters(model.state_dict(), root_rank=1)
    hvd.broadcast_optimizer_state(optimizer, root_rank=1)
    everyone = hvd.allgather_object((model.state_dict(), optimizer.state_dict()))
    for models, optimizers in everyone:
        assert all(torch.equal(models[name], value) for name, value in model.state_dict().items())
        assert optimizers["param_groups"] == optimizer.state_dict()["param_groups"]
        for number, values in optimizers["state"].items():
            for name, value in values.items():
                assert torch.equal(value, optimizer.state_dict()["state"][number][name])
    assert optimizer.param_groups[0]["lr"] == 0.2 and len(optimizer.state) == 4


def everything() -> None:
    steps()
    clipping_and_mistakes()
    states()


def test_optimizer_and_states(job) -> None:
    job(2, everything)


def removed() -> None:
    """Worker 1 is asked to leave, and learns it in a backward pass."""
    hvd.init()
    worker = hvd.rank()
    model = torch.nn.Linear(2, 1)
    optimizer = wrapped(model)
    if worker == 0:
        subprocess.run([LAUNCHER, "ctl", "remove", "1"], check=True, timeout=30)

    def until_one_is_left() -> None:
        while hvd.size() == 2:
            hvd.allreduce(torch.ones(1))

    if worker == 0:
        until_one_is_left()
    else:
        with pytest.raises(hvd.HorovodInternalError):
            until_one_is_left()
        with pytest.raises(hvd.HorovodInternalError) as caught:
            model(torch.ones(1, 2)).sum().backward()
        assert isinstance(caught.value.__cause__, elastic.RemovedError)
    print("told")


def test_a_removed_worker_gets_an_error_of_horovod(job) -> None:
    assert job(2, removed, "--max-restarts", "0").count("told") == 2
