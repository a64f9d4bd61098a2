"""What is trained: the cells of the experiment, in one process or as a real job."""

import json
import os
import pathlib
import subprocess
import tempfile
import time
from dataclasses import dataclass

SECONDS = 120  # that a training may take: none does, unless something hangs
UNDISTURBED = "undisturbed"
POLICIES = ("ramp", "immediate", "rescale", "reset", "none")


class TrainingFailed(Exception):
    pass


@dataclass(frozen=True)
class Plan:
    """In epochs, from 0."""
    epochs: int = 18
    grow_at: int = 5
    shrink_at: int = 12


@dataclass(frozen=True)
class Cell:
    """The undisturbed one has one worker all the time."""
    eta: float
    workers: int
    policy: str
    seed: int

    def options(self, plan):
        policy = "none" if self.policy == UNDISTURBED else self.policy
        return ["--lr", str(self.eta), "--workers", str(self.workers), "--policy", policy,
                "--seed", str(self.seed),
                "--epochs", str(plan.epochs), "--grow-at", str(plan.grow_at),
                "--shrink-at", str(plan.shrink_at)]


def parsed(text):
    return [json.loads(line) for line in text.splitlines()]


class Trainings:
    """Runs trainings with the programs in `programs`; `data` is a CSV file, or None."""

    def __init__(self, programs, plan, data):
        self.programs = programs
        self.plan = plan
        self.data = ["--data", str(data)] if data else []

    def command(self, cell, *more):
        return [str(self.programs / "dynamic_sgd"), *cell.options(self.plan), *self.data, *more]

    def simulated(self, cell):
        """The steps, with all workers in one process."""
        words = self.command(cell)
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            raise TrainingFailed(f"`{' '.join(words)}` ended with {done.returncode}: {done.stderr}")
        return parsed(done.stdout)

    def real(self, cell, algorithm):
        """The steps of a job under elasticrun, whose workers come and die."""
        with tempfile.TemporaryDirectory(prefix="dynamic-sgd-") as folder:
            job = RealJob(self, cell, algorithm, pathlib.Path(folder))
            try:
                return job.train()
            finally:
                job.end()


class RealJob:
    def __init__(self, trainings, cell, algorithm, folder):
        self.launcher = str(trainings.programs / "elasticrun")
        self.missing = cell.workers - 1
        self.log, self.steps = folder / "log", folder / "steps.jsonl"
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder),
                            "ELASTIC_ALGORITHM": algorithm}
        self.words = [self.launcher, "-np", "1", "--min-np", "1", "--max-np", str(cell.workers),
                      "--max-restarts", "0",
                      *trainings.command(cell, "--elastic", "--out", str(self.steps))]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, env=self.environment)

    def fail(self, how):
        raise TrainingFailed(f"`{' '.join(self.words)}` {how}: {self.log.read_text()[-4000:]}")

    def train(self):
        deadline = time.monotonic() + SECONDS
        while " waits for " not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.fail("asked for no workers")
            time.sleep(0.02)
        subprocess.run([self.launcher, "ctl", "add", str(self.missing)], env=self.environment,
                       stdout=subprocess.DEVNULL, check=True, timeout=SECONDS)
        try:
            status = self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.fail(f"was not done after {SECONDS} s")
        if status != 0:
            self.fail(f"ended with {status}")
        return parsed(self.steps.read_text())

    def end(self):
        """The launcher ends its workers where it is asked to end."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(SECONDS)
