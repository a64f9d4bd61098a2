"""hvd.elastic: a training through a death, a replacement and a join."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
hvd = pytest.importorskip("horovod.torch")

from conftest import LAUNCHER  # noqa: E402

STEPS = 60


def training() -> None:
    """Worker 1 dies in step 10, in the middle of the exchange, and is replaced; another one is
    added in step 25."""
    hvd.init()
    torch.manual_seed(hvd.rank())  # so that models differ until they are synchronized
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)
    )
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), model.named_parameters()
    )
    resets = []
    entered = []

    @hvd.elastic.run
    def train(state: hvd.elastic.TorchState) -> str:
        entered.append(state.step)
        while state.step < STEPS:
            inputs = torch.randn(8, 4)
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            if state.step == 10 and hvd.rank() == 1 and os.environ["ELASTIC_RESTART"] == "0":
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.step()
            state.step += 1
            state.sizes.append(hvd.size())
            if hvd.rank() == 0 and state.step == 25:
                subprocess.run([LAUNCHER, "ctl", "add", "1"], check=True, timeout=30)
            if state.step == STEPS and hvd.size() < 4:
                state.step -= 1  # until the new workers are there
                state.sizes.pop()
            state.commit()
        return "trained"

    state = hvd.elastic.TorchState(model, optimizer, step=0, sizes=[], own=hvd.rank())
    state.register_reset_callbacks([lambda: resets.append(hvd.size())])
    assert train(state) == "trained"
    for tensor in model.parameters():
        everyone = hvd.allgather(tensor.detach().reshape(1, -1))
        assert (everyone == tensor.detach().reshape(1, -1)).all(), "replicas differ"
    assert hvd.broadcast_object(state.sizes) == state.sizes
    print(f"ended: {state.step} steps, {hvd.size()} workers, resets {resets}, entered {entered}")


def test_trains_through_a_death_a_replacement_and_a_join(job) -> None:
    output = job(3, training, "--max-np", "4", "--max-restarts", "1", timeout=150)
    assert "died of signal 9" in output
    ends = re.findall(r"ended: 60 steps, (\d) workers, resets (\[.*?\]), entered (\[.*?\])", output)
    assert [end[0] for end in ends] == ["4"] * 4, output
    survivors = [end for end in ends if end[2].startswith("[0, 11,")]
    assert len(survivors) == 2, f"the survivors did not go on in step 11:\n{output}"
    assert all(end[1].startswith("[2,") for end in survivors), output
