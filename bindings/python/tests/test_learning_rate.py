"""elastic.torch.ElasticLR: PyTorch's optimizers follow the batch as elastic's own do."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import elastic

torch = pytest.importorskip("torch")

POLICIES = ("ramp", "immediate", "rescale", "reset", "none")


def rate_for(policy: str) -> elastic.LearningRate:
    schedule = elastic.Schedule.polynomial(0.05, samples=2000, last=0.001)
    return elastic.LearningRate(schedule, batch_reference=16, policy=policy, ramp_steps=4)


def follows(kind: str) -> None:
    """The same steps as elastic's optimizers, while the batch grows and shrinks."""
    import elastic.torch

    elastic.init()
    batches = [16] * 4 + [64] * 7 + [32] * 4
    for policy in POLICIES:
        own = np.linspace(-1, 1, 12, dtype=np.float32)
        weights = torch.nn.Parameter(torch.from_numpy(own.copy()))
        if kind == "sgd":
            theirs = torch.optim.SGD([weights], lr=1.0, momentum=0.9, nesterov=policy == "ramp")
            ours = elastic.MomentumSgd([own], momentum=0.9, nesterov=policy == "ramp")
        else:
            theirs = torch.optim.AdamW([weights], lr=1.0, weight_decay=0.01)
            ours = elastic.AdamW([own], weight_decay=0.01)
        rate = rate_for(policy)
        schedule = elastic.torch.ElasticLR(theirs, rate_for(policy), batch_per_worker=16)
        for step, batch in enumerate(batches):
            gradient = np.sin(np.arange(12, dtype=np.float32) + step) + own
            weights.grad = torch.from_numpy(gradient.copy())
            schedule.step(batch=batch)
            theirs.step()
            ours.step([gradient * batch], batch, rate.step(batch, batch))
            apart = np.abs(weights.detach().numpy() - own).max()
            # A reset begins Adam's correction again, which PyTorch cannot do.
            if not (kind == "adam" and policy == "reset" and step >= 4):
                assert apart < 1e-5, (policy, step, apart)
        assert schedule.learning_rate.progress == rate.progress == sum(batches)
        assert schedule.last_epoch == len(batches)
    elastic.shutdown()


def follows_as_sgd() -> None:
    follows("sgd")


def follows_as_adam() -> None:
    follows("adam")


@pytest.mark.parametrize("body", [follows_as_sgd, follows_as_adam])
def test_steps_are_those_of_elastics_optimizers(job, body) -> None:
    job(1, body)


def as_a_scheduler() -> None:
    import elastic.torch

    elastic.init()
    n = elastic.size()
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 2)
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.SGD(
            [{"params": [model.weight], "lr": 0.2}, {"params": [model.bias], "lr": 0.1}], lr=1.0
        ),
        model.named_parameters(),
    )
    schedule = elastic.torch.ElasticLR(
        optimizer,
        elastic.LearningRate(elastic.Schedule.constant(0.4), 8, policy="immediate"),
        batch_per_worker=8,
    )
    schedulers = torch.optim.lr_scheduler
    assert isinstance(schedule, getattr(schedulers, "LRScheduler", schedulers._LRScheduler))
    assert schedule.get_last_lr() == [0.2, 0.1]
    with pytest.raises(elastic.InvalidArgumentError, match="no contributors yet"):
        schedule.step()
    for steps in range(1, 4):
        optimizer.zero_grad()
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        schedule.step()
        assert schedule.learning_rate.progress == steps * 8 * n
    assert np.allclose(schedule.get_last_lr(), [0.4 * n, 0.2 * n])
    assert [group["lr"] for group in optimizer.param_groups] == schedule.get_last_lr()
    schedule.step(optimizer.contributors[0], samples=5)
    assert schedule.learning_rate.progress == 3 * 8 * n + 5
    saved = schedule.state_dict()
    schedule.step()
    schedule.load_state_dict(saved)
    assert schedule.learning_rate.progress == 3 * 8 * n + 5 and schedule.last_epoch == 4

    rate = elastic.LearningRate(elastic.Schedule.constant(0.4), 8)
    plain = torch.optim.SGD([model.weight], lr=0.1)
    still = torch.optim.SGD([model.bias], lr=0.0)
    for arguments, error, text in (
        ((model, rate, 8), TypeError, "optimizer is a Linear"),
        ((plain, 0.1, 8), TypeError, "give an elastic.LearningRate"),
        ((plain, rate, 0), elastic.InvalidArgumentError, "batch_per_worker is 0"),
        ((still, rate, 8), elastic.InvalidArgumentError, "must be above 0"),
    ):
        with pytest.raises(error, match=text):
            elastic.torch.ElasticLR(*arguments)
    with pytest.raises(elastic.InvalidArgumentError, match="is -1"):
        schedule.step(batch=-1)
    elastic.shutdown()


def test_it_is_a_scheduler_of_pytorch(job) -> None:
    job(2, as_a_scheduler)


def through_a_kill() -> None:
    import elastic.torch

    elastic.init()
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 2)
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), model.named_parameters()
    )
    rate = elastic.LearningRate(elastic.Schedule.constant(0.1), 8, policy="ramp", ramp_steps=6)
    schedule = elastic.torch.ElasticLR(optimizer, rate, batch_per_worker=8)
    state = elastic.torch.TorchState(
        model=model, optimizer=optimizer, schedule=schedule, seen=[], complete=0
    )
    dies = os.environ["ELASTIC_RESTART"] == "0" and os.environ["RANK"] == "1"

    def train(state: elastic.State) -> None:
        while state.commits < 20 or state.complete < 10:
            optimizer.zero_grad()
            model(torch.ones(1, 4)).square().sum().backward()
            if state.commits == 15 and dies:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.synchronize()
            schedule.step()
            with optimizer.skip_synchronize():
                optimizer.step()
            workers = min(len(each) for each in optimizer.contributors)
            state.complete = state.complete + 1 if workers == 3 else 0
            state.seen[:] = state.seen[-30:] + [[workers, schedule.get_last_lr()[0]]]
            state.commit()

    elastic.torch.run(state, train)
    assert schedule.last_epoch == state.commits
    rates = dict(state.seen)
    assert abs(rates[3] - 0.3) < 1e-9, state.seen
    for workers, value in state.seen:
        assert workers == 3 or value < 0.2 + 1e-9, state.seen
    numbers = np.array([rate.progress, *schedule.get_last_lr(), *model.weight.detach().reshape(-1)])
    everyone = elastic.allgather(numbers.reshape(1, -1)).values
    assert (everyone == numbers).all(), everyone
    print("the same rate", flush=True)
    elastic.shutdown()


def test_rates_fall_with_a_death_and_grow_with_a_joiner(job) -> None:
    assert job(3, through_a_kill, timeout=120).count("the same rate") == 3
