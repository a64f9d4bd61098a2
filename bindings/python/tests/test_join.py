"""Workers with uneven data: join."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import elastic
from conftest import Job


def uneven_steps() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    for step in range(rank + 1):
        values = np.full(1000, rank + 1.0)
        mean = np.full(3, 6.0)
        works = [
            elastic.allreduce_async("sum", values),
            elastic.allreduce_async("mean", mean, elastic.AVERAGE),
            elastic.barrier_async(name="barrier"),
        ]
        elastic.wait_all(works)
        assert (values == sum(range(step + 1, n + 1))).all()
        assert np.allclose(mean, 6.0 * (n - step) / n)
    outcome = elastic.join()
    assert outcome.last_rank == n - 1
    assert outcome.contributors.workers == elastic.members().workers
    assert elastic.allreduce(1) == n
    elastic.shutdown()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_others_go_on_without_a_worker_that_has_joined(job: Job, workers: int) -> None:
    job(workers, uneven_steps)


def other_calls() -> None:
    elastic.init()
    if elastic.rank() > 0:
        with pytest.raises(elastic.MismatchError, match="rank 0 has called join"):
            elastic.allgather_async(np.ones(2), name="blocks").wait()
        with pytest.raises(elastic.MismatchError, match="rank 0 has called join"):
            elastic.broadcast_async(np.ones(2), 1, name="values").wait()
    assert elastic.join().last_rank > 0
    assert elastic.allgather_async(np.ones(2), name="blocks").wait().counts == [2] * elastic.size()
    elastic.shutdown()


def test_calls_that_need_the_data_of_all_fail_while_one_has_joined(job: Job) -> None:
    job(3, other_calls)


def the_last_dies() -> None:
    elastic.init()
    if elastic.rank() == 1:
        elastic.allreduce_async("sum", np.ones(3)).wait()
        os.kill(os.getpid(), signal.SIGKILL)
    outcome = elastic.join()
    assert len(outcome.contributors) == 2 and outcome.last_rank in (0, 1)
    elastic.shutdown()


def test_returns_when_the_last_that_has_not_joined_dies(job: Job) -> None:
    job(3, the_last_dies, "--max-restarts", "0")
