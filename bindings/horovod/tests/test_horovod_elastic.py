"""hvd.elastic: a training through a death, a replacement and a join."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

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


def divided_after_a_death() -> None:
    """Worker 2 dies after an epoch, before one of the others begins the next and after another has."""
    hvd.init()
    data = torch.utils.data.TensorDataset(torch.arange(24.0))
    sampler = hvd.elastic.ElasticSampler(data, shuffle=False)

    @hvd.elastic.run
    def train(state: hvd.elastic.TorchState) -> None:
        while state.epoch < 2:
            begun = list(sampler)
            sizes = hvd.allgather_object(len(begun))
            assert len(set(sizes)) == 1, sizes
            if state.epoch == 0 and state.worker == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            state.epoch += 1
            deadline = time.monotonic() + 30
            while state.worker == 1 and hvd.size() == 3 and time.monotonic() < deadline:
                time.sleep(0.001)
            sampler.set_epoch(state.epoch)
            assert sampler.num_replicas == 4 - state.epoch  # of the last commit
            state.commit()

    state = hvd.elastic.TorchState(sampler=sampler, epoch=0)
    state.worker = hvd.rank()
    train(state)
    assert sampler.num_replicas == 2
    print("divided alike")


def test_samples_are_divided_alike_where_a_death_comes_between(job) -> None:
    assert job(3, divided_after_a_death, "--max-restarts", "0").count("divided alike") == 2


def called_again_before_the_step() -> None:
    """Worker 1 dies; the commit that tells the others comes between a backward pass and its step."""
    hvd.init()
    model = torch.nn.Linear(2, 1)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters()
    )
    worker = hvd.rank()
    entered = []

    @hvd.elastic.run
    def train(state: hvd.elastic.TorchState) -> None:
        entered.append(state.step)
        while state.step < 6 or len(entered) < 2:
            if state.step == 3 and worker == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.zero_grad()
            model(torch.ones(2, 2)).sum().backward()
            state.commit()
            optimizer.step()
            state.step += 1

    train(hvd.elastic.TorchState(model, optimizer, step=0))
    weights = hvd.allgather(model.weight.detach())
    assert (weights == weights[:1]).all()
    print("went on")


def test_gradients_of_a_training_that_is_called_again_are_forgotten(job) -> None:
    output = job(3, called_again_before_the_step, "--max-restarts", "0")
    assert output.count("went on") == 2, output


class KilledWhenItIsSent:
    def __getstate__(self) -> dict:
        if hvd.rank() == 0 and hvd.size() == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return {}


def first_state_of_a_root_that_dies() -> None:
    """It dies when its model has travelled, and its other values have not."""
    hvd.init()
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(model.weight, 17.0 if hvd.rank() == 0 else 0.0)
    epoch = 17 if hvd.rank() == 0 else 0
    state = hvd.elastic.TorchState(model, epoch=epoch, object=KilledWhenItIsSent())

    @hvd.elastic.run
    def train(state: hvd.elastic.TorchState) -> None:
        assert (model.weight.item(), state.epoch) == (0.0, 0)
        print("begins with its own")

    train(state)


def test_a_root_that_dies_in_the_first_sync_leaves_no_mixture(job) -> None:
    output = job(3, first_state_of_a_root_that_dies, "--max-restarts", "0")
    assert output.count("begins with its own") == 2, output
