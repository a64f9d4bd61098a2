"""A real job on this machine that follows a compressed trace, and what its simulation predicts.

A machine is an elasticrun with one worker, as the agent of a spot host in docs/aws.md. It is started when
boot and prepare, compressed as the trace is, have passed, and taken away by SIGKILL. The worker is
train_digits, whose steps are drawn out by sleep, so that a few fit on two cores; allreduce, joins and
recoveries are real, and not compressed.
"""

import dataclasses
import json
import pathlib
import tempfile
import time
from dataclasses import dataclass

from availability import Trace
from elastic import elastic_for
from machines import Machines, ReplayFailed
from outcome import Outcome
from setting import Delays, Job, Setting

BATCH = 16  # samples of a worker in a step: the default of train_digits
START_DEADLINE = 30.0  # seconds, for the base worker to train


@dataclass(frozen=True)
class Plan:
    trace: Trace  # compressed
    delays: Delays  # as they are without compression
    compress: float
    most: int
    step_seconds: float
    seconds: float

    @property
    def start(self):
        """Seconds of the replay from the request for a machine until its worker starts."""
        return self.delays.start / self.compress


def predict(plan):
    delays = dataclasses.replace(plan.delays, boot=plan.delays.boot / plan.compress,
                                 prepare=plan.delays.prepare / plan.compress)
    setting = Setting(job=Job(batch=BATCH, most=plan.most, base=1), delays=delays,
                      step_seconds=lambda workers: plan.step_seconds)
    return elastic_for(setting, plan.trace, plan.seconds)


def requests(plan):
    """[(moment, machines)]: how many spot machines are to be there from then on."""
    changes = []
    for segment in plan.trace.segments(0.0, plan.seconds):
        wanted = min(segment.capacity, plan.most - 1)
        if not changes or changes[-1][1] != wanted:
            changes.append((segment.begin, wanted))
    return changes


def read_steps(folder, process):
    """Those that a worker has traced."""
    path = folder / f"trace-{process}.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def await_training(machines, folder):
    """The trace of the base worker, and when it made its first step."""
    deadline = time.monotonic() + START_DEADLINE
    while time.monotonic() < deadline:
        machines.check()
        for path in folder.glob("trace-*.jsonl"):
            process = path.stem.partition("-")[2]
            steps = read_steps(folder, process)
            if steps:
                return process, steps[0]["at_ns"] / 1e9
        time.sleep(0.005)
    raise ReplayFailed(f"the base worker does not train: {machines.log()}")


def follow(plan, machines, began):
    """Adds and takes machines as the trace says, until the replay is over."""
    spot = []  # [moment at which the worker starts, machine or None], oldest first
    changes = requests(plan)
    now = 0.0
    while now < plan.seconds:
        machines.check()
        while changes and changes[0][0] <= now:
            at, wanted = changes.pop(0)
            while len(spot) > wanted:
                _, machine = spot.pop(0)
                if machine:
                    machines.take(machine)
            spot += [[at + plan.start, None] for _ in range(wanted - len(spot))]
        for one in spot:
            if one[1] is None and one[0] <= now:
                one[1] = machines.start()
        moments = [at for at, _ in changes[:1]] + [at for at, machine in spot if machine is None]
        wake = min([plan.seconds, *moments])
        time.sleep(max(0.0, min(wake - now, 0.05)))
        now = time.monotonic() - began


def count(steps, began, seconds):
    """The steps of the base worker, which is there from the start to the end."""
    seen = [step for step in steps if step["at_ns"] / 1e9 - began <= seconds]
    grown = sum(after["workers"] > before["workers"] for before, after in zip(seen, seen[1:]))
    shrunk = sum(after["workers"] < before["workers"] for before, after in zip(seen, seen[1:]))
    return Outcome(seconds, 0.0, len(seen), sum(step["batch"] for step in seen), 0.0, shrunk, grown)


def replay(plan, programs):
    """The predicted outcome, and the counted one."""
    with tempfile.TemporaryDirectory(prefix="spot-replay-") as name:
        folder = pathlib.Path(name)
        machines = Machines(programs, folder, plan.most, plan.step_seconds)
        try:
            machines.start()
            process, began = await_training(machines, folder)
            follow(plan, machines, began)
            return predict(plan), count(read_steps(folder, process), began, plan.seconds)
        finally:
            machines.end()
