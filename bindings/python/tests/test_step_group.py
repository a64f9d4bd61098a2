"""The gradients of a step as one unit."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import elastic
from conftest import Job


def steps() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    step = elastic.StepGroup()
    for number in range(3):
        weights = np.full(1000, rank + number, np.float32)
        bias = np.ones(7)
        mean = np.zeros(7)
        step.allreduce("weights", weights)
        step.allreduce("bias", bias, elastic.AVERAGE, out=mean)
        assert step.open == 2
        contributors = step.wait()
        assert len(contributors) == n and step.open == 0
        assert (weights == n * (n - 1) / 2 + n * number).all()
        assert (bias == 1).all() and (mean == 1).all()
    assert step.kept_bytes == 4000
    elastic.shutdown()


def test_steps_have_one_set_of_contributors(job: Job) -> None:
    job(2, steps)


def mistakes() -> None:
    elastic.init()
    step = elastic.StepGroup()
    weights = np.ones(10)
    step.allreduce("weights", weights)
    with pytest.raises(elastic.InvalidArgumentError, match="tensor 'weights' is in this step"):
        step.allreduce("weights", weights)
    step.wait()
    weights[:] = 1
    odd = np.ones(4 + elastic.rank())
    step.allreduce("weights", weights)
    step.allreduce("odd", odd)
    with pytest.raises(elastic.MismatchError, match="because of tensor 'odd'"):
        step.wait()
    assert (weights == 1).all() and (odd == 1).all()
    step.allreduce("weights", weights)
    assert len(step.wait()) == 2
    elastic.shutdown()


def test_mistakes_are_named_on_all_ranks(job: Job) -> None:
    job(2, mistakes)


def open_at_a_commit() -> None:
    elastic.init()
    state = elastic.State(weights=np.ones(10))
    step = elastic.StepGroup()

    def body(state: elastic.State) -> None:
        gradient = np.ones(10)
        step.allreduce("weights", gradient)
        with pytest.raises(elastic.InvalidArgumentError, match="a StepGroup is open, with tensor"):
            state.commit()
        step.wait()
        state.commit()

    elastic.run(state, body)
    elastic.shutdown()


def test_a_commit_refuses_an_open_step(job: Job) -> None:
    job(2, open_at_a_commit)


def death_within_a_step() -> None:
    elastic.init()
    rank = elastic.rank()
    step = elastic.StepGroup()
    first, second = np.full(1000, 10.0**rank), np.full(1000, 10.0**rank)
    step.allreduce("first", first)
    elastic.barrier()  # the first tensor is sent
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    step.allreduce("second", second)
    contributors = step.wait()
    assert len(contributors) == 2
    assert (first == 101).all() and (second == 101).all(), (first[0], second[0])
    elastic.shutdown()


def test_a_death_leaves_all_tensors_with_the_survivors(job: Job) -> None:
    job(3, death_within_a_step, "--max-restarts", "0", "--min-np", "1")
