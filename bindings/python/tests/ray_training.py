"""What the workers of test_ray.py do. Without pytest and Ray, which take seconds to import."""

from __future__ import annotations

import os
import pathlib
import time

import numpy as np

import elastic

SAMPLES = 512


def train_until_told() -> None:
    """Counts how often each sample is used, until a file is there and the epoch is over."""
    told = pathlib.Path(os.environ["TOLD"])
    elastic.init()
    sampler = elastic.Sampler(SAMPLES, seed=1)
    uses = np.zeros(SAMPLES)
    state = elastic.State(sampler=sampler, uses=uses, epochs=1 << 30)

    def train(state: elastic.State) -> None:
        while not sampler.finished(state.epochs):
            sums = np.zeros(SAMPLES + 1)
            sums[sampler.next(batch_per_worker=4)] = 1
            sums[SAMPLES] = told.exists()
            contributors = elastic.allreduce(sums)
            sampler.commit(contributors)
            uses[:] += sums[:SAMPLES]
            if sums[SAMPLES] > 0:
                state.epochs = min(state.epochs, sampler.epoch + 1)
            time.sleep(0.005)  # so that nodes can come and go meanwhile
            state.commit()

    if elastic.run(state, train) == elastic.RunOutcome.FINISHED:
        print(f"uses beyond one an epoch: {abs(uses - state.epochs).max():g}")
    elastic.shutdown()


def fail_on_first_rank() -> None:
    elastic.init()
    if elastic.rank() == 0:
        raise SystemExit(7)
    elastic.barrier()
