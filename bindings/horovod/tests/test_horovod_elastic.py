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

from horovod.common.elastic import _Run  # noqa: E402

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


class Dying(hvd.elastic.TorchState):
    """When it is sent to a joiner, the worker that sends it dies; and so does the other one that
    has it, if it is asked to."""

    everyone = False

    def sync(self) -> None:
        if hvd.size() == 3:
            root = _Run.root() == hvd.rank()
            has_it = self.step > 0
            hvd.broadcast_object("in the middle", _Run.root())
            if root or (self.everyone and has_it):
                os.kill(os.getpid(), signal.SIGKILL)
        super().sync()


def joined() -> None:
    """A worker joins in step 5, and has the state only if one is left that gives it."""
    hvd.init()
    if int(os.environ["RANK"]) < 2:
        torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(2, 1)
    entered = []

    @hvd.elastic.run
    def train(state: Dying) -> None:
        entered.append(state.step)
        while state.step < 10:
            state.step += 1
            state.weight = float(model.weight[0, 0])
            if state.step == 5:
                if hvd.rank() == 0:
                    subprocess.run([LAUNCHER, "ctl", "add", "1"], check=True, timeout=30)
                while hvd.size() == 2:  # until the new worker is there
                    state.commit()
            state.commit()

    state = Dying(model, step=0, weight=0.0)
    state.everyone = os.environ["EVERYONE"] == "1"
    train(state)
    assert hvd.allgather_object(state.weight) == [float(model.weight[0, 0])] * 2
    print(f"ended after {entered}")


def test_another_member_sends_the_state_if_the_root_dies(job) -> None:
    output = job(2, joined, "--max-np", "3", "--max-restarts", "0", EVERYONE="0")
    assert output.count("ended after [5]") == 1, output
    assert output.count("ended after [0, 5]") == 1, output


def test_a_state_that_nobody_has_any_more_is_an_error(job) -> None:
    options = ("--max-np", "3", "--max-restarts", "0")
    output = job(2, joined, *options, EVERYONE="1", succeeds=False)
    assert "the last worker that had the state is gone" in output and "ended after" not in output


def test_trains_through_a_death_a_replacement_and_a_join(job) -> None:
    output = job(3, training, "--max-np", "4", "--max-restarts", "1", timeout=150)
    assert "died of signal 9" in output
    ends = re.findall(r"ended: 60 steps, (\d) workers, resets (\[.*?\]), entered (\[.*?\])", output)
    assert [end[0] for end in ends] == ["4"] * 4, output
    survivors = [end for end in ends if end[2].startswith("[0, 11,")]
    assert len(survivors) == 2, f"the survivors did not go on in step 11:\n{output}"
    assert all(end[1].startswith("[2,") for end in survivors), output
