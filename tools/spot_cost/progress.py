"""How much a sample teaches with more workers: from trainings of the digits in one process.

examples/dynamic_sgd trains an epoch with one worker, and then with some number of workers, each with a
batch of its own, under the resize policy ramp. It counts the samples until the accuracy on held-out
digits, as a mean over a quarter of an epoch, reaches a target. The progress per sample is that number
with one worker divided by that with more, each the median over seeds.
"""

import collections
import concurrent.futures
import json
import os
import statistics
import subprocess

from availability import BadInput

EPOCHS = 40  # all trainings have reached the target long before
WORKERS = (1, 2, 4, 8, 16)
TARGET = 0.95
SECONDS = 120  # that a training may take


def samples_to(target, steps, epoch, window):
    """Samples used when the mean accuracy over the last `window` samples reaches it; behind `epoch`."""
    recent, total = collections.deque(), 0.0
    for step in steps:
        recent.append(step)
        total += step["accuracy"]
        while recent[0]["samples"] <= step["samples"] - window:
            total -= recent.popleft()["accuracy"]
        if step["samples"] > epoch and total / len(recent) >= target:
            return step["samples"]
    return None


def train(programs, workers, seed):
    words = [programs / "dynamic_sgd", "--workers", workers, "--grow-at", 1, "--shrink-at", EPOCHS - 1,
             "--epochs", EPOCHS, "--seed", seed]
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        raise BadInput(f"`{' '.join(words)}` ended with {done.returncode}: {done.stderr}")
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    epoch = steps[-1]["samples"] / EPOCHS
    reached = samples_to(TARGET, steps, epoch, epoch / 4)
    if reached is None:
        raise BadInput(f"`{' '.join(words)}` did not reach an accuracy of {TARGET}")
    return reached


def measure_progress(programs, seeds):
    """The object of a file for --progress."""
    cells = [(workers, seed) for workers in WORKERS for seed in range(1, seeds + 1)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        reached = list(pool.map(lambda cell: train(programs, *cell), cells))
    samples = {workers: sorted(reached[at * seeds:(at + 1) * seeds]) for at, workers in enumerate(WORKERS)}
    alone = statistics.median(samples[1])
    return {"progress_per_sample": {str(workers): round(alone / statistics.median(of_it), 3)
                                    for workers, of_it in samples.items()},
            "samples": {str(workers): of_it for workers, of_it in samples.items()},
            "made_by": f"tools/spot_cost progress --seeds {seeds}"}
