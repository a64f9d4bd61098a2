"""Linear regression on NumPy arrays, on workers that come and go.

    elasticrun -np 3 python regression.py --step-ms 20

Kill a worker while it trains: the others go on, and its samples go to them.
Without --step-ms the training takes a second.
"""

import argparse
import time

import numpy as np

import elastic

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--step-ms", type=float, default=0, help="wait after each step, to be watched")
options = parser.parse_args()

elastic.init()
data = np.random.default_rng(1).normal(size=(4096, 8))
wanted = np.arange(8.0)
target = data @ wanted

weights = np.zeros(8)
sampler = elastic.Sampler(len(data), seed=1)
state = elastic.State(weights=weights, sampler=sampler)


def train(state: elastic.State) -> None:
    while not sampler.finished(epochs=20):
        share = sampler.next(batch_per_worker=16)
        error = data[share] @ weights - target[share]
        sums = np.append(error @ data[share], len(share))  # gradient, and its samples
        contributors = elastic.allreduce(sums)
        sampler.commit(contributors)
        weights[:] -= 0.1 * sums[:8] / sums[8]
        state.commit()  # workers join and leave here
        time.sleep(options.step_ms / 1000)


elastic.run(state, train)
if elastic.rank() == 0:
    print(f"{state.commits} steps, largest error {abs(weights - wanted).max():.1e}")
elastic.shutdown()
