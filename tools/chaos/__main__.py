#!/usr/bin/env python3
"""Trains the digits with two to eight workers under a random stream of faults, and watches.

Ends with 1 on any violation: replicas that differ, a step lost or repeated, a sample missed or used
twice, an error at a worker, no step for half a minute, a worker evicted for nothing, a process or
descriptors left behind. The seed repeats the choices, not the moments at which they meet the job.
"""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from faults import Faults  # noqa: E402
from job import Job  # noqa: E402
from record import Record  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORKERS = 4
HANG = 30.0  # seconds without a step
ENDING = 30.0  # seconds for all to stop
EVICTED = "joins again"  # what an evicted worker logs


def arguments():
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--pause", type=float, default=1.2, help="mean seconds between faults")
    parser.add_argument("--step-ms", type=int, default=10, help="draws the steps out")
    parser.add_argument("--transport", choices=("auto", "shm", "tcp"), default="auto")
    parser.add_argument("--encrypt", action="store_true", help="TLS on what goes over TCP")
    parser.add_argument("--verbose", action="store_true", help="a line for each fault")
    parser.add_argument("--keep", action="store_true", help="keep the files in any case")
    return parser.parse_args()


class Chaos:
    def __init__(self, options, folder):
        self.options = options
        self.random = random.Random(options.seed)
        self.job = Job(options.bin.resolve(), folder, f"chaos-{options.seed}-{folder.name[-8:]}",
                       WORKERS, options.transport, options.encrypt,
                       ["--step-ms", str(options.step_ms)])
        self.record = Record(folder, self.job)
        self.faults = Faults(self.job, self.record, self.random)
        self.violations = self.record.violations
        self.seen = set()  # processes whose end has been looked at, evictions that were reported
        self.started = time.monotonic()
        self.last_step_at = self.started

    def elapsed(self):
        return time.monotonic() - self.started

    def log(self, text):
        if self.options.verbose:
            print(f"{self.elapsed():8.1f} s  {text}", flush=True)

    def show(self):
        if sys.stdout.isatty() and not self.options.verbose:
            print(f"\r{self.elapsed():6.0f} s  {len(self.job.live())} workers  generation "
                  f"{self.record.generation}  step {self.record.last_step()}  "
                  f"{sum(self.faults.done.values())} faults  {len(self.violations)} violations ",
                  end="", flush=True)

    def run(self):
        self.job.start_server()
        for _ in range(WORKERS):
            self.job.start_worker()
        self.watch(until=lambda: self.record.last_step() >= 20)
        end = self.started + 60 * self.options.minutes
        while time.monotonic() < end and not self.violations:
            what = self.faults.strike()
            if what:
                self.log(what)
            pause = time.monotonic() + self.random.expovariate(1 / self.options.pause)
            self.watch(until=lambda: time.monotonic() >= min(pause, end))
        self.watch(until=lambda: not self.faults.pending())
        self.settle()
        self.end()

    def watch(self, until):
        while not until() and not self.violations:
            self.faults.run_due()
            self.look()
            self.show()
            time.sleep(0.05)

    def look(self):
        if self.record.read():
            self.last_step_at = time.monotonic()
        elif time.monotonic() - self.last_step_at > HANG:
            self.violations.append(f"no step for {HANG:.0f} s")
        if self.job.server and self.job.server.poll() is not None:
            self.violations.append(f"the server ended with {self.job.server.returncode}")
        for worker in self.job.workers:
            if worker.process.poll() is not None and worker.pid not in self.seen:
                self.seen.add(worker.pid)
                self.look_at_end(worker)

    def look_at_end(self, worker):
        code = worker.process.returncode
        if worker.killed:
            return
        if code == 0 and self.faults.removals > 0:
            self.faults.removals -= 1
            self.log(f"{worker.name} was removed")
            return
        lines = "\n    ".join(worker.log().splitlines()[-5:])
        self.violations.append(f"{worker.name} ended with {code}:\n    {lines}")

    def settle(self):
        """All that live are to become members, so that the end finds them in step."""
        deadline = time.monotonic() + HANG
        self.watch(until=lambda: self.job.settled() or time.monotonic() > deadline)
        if not self.violations and not self.job.settled():
            self.violations.append(f"not all workers are members after {HANG:.0f} s in peace")
        for worker in self.job.live():
            if worker.longest_stop < 0.4 and EVICTED in worker.log():
                self.violations.append(f"{worker.name} was evicted, and never stood still")
        self.check_descriptors()

    def check_descriptors(self):
        """Links, listeners and a few of their own: what is beyond that has leaked."""
        live = self.job.live()
        for worker in live:
            count = self.job.descriptors(worker.pid)
            self.log(f"{worker.name} has {count} descriptors among {len(live)} workers")
            if count > 40 + 16 * len(live):
                self.violations.append(f"{worker.name} has {count} descriptors")
        count = self.job.descriptors(self.job.server.pid)
        self.log(f"the server has {count} descriptors")
        if count > 40 + 4 * len(live):
            self.violations.append(f"the server has {count} descriptors")

    def end(self):
        if self.violations:
            return
        members = self.job.live()
        if self.job.control("stop") is None:
            self.violations.append("the server does not take a stop")
            return
        deadline = time.monotonic() + ENDING
        while self.job.live() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.record.read()
        for worker in members:
            code = worker.process.poll()
            if code != 0:
                self.violations.append(f"{worker.name} ended the job with {code}")
        self.job.server.terminate()
        self.job.server.wait()
        self.job.server = None
        self.record.check_steps()
        if self.record.check_reports() == 0:
            self.violations.append("nobody reported the end")
        for pid in self.job.leaked():
            self.violations.append(f"process {pid} is left behind")

    def summary(self):
        print(f"\nchaos: seed {self.options.seed}, {self.elapsed():.0f} s, "
              f"{self.record.last_step()} steps, {self.record.generation - 1} view changes, "
              f"{self.job.born} workers in all")
        for kind in self.faults.WEIGHTS:
            print(f"  {kind:<16}{self.faults.done[kind]:>5}")
        times = self.record.recoveries_ms()
        if times:
            at = lambda share: times[min(len(times) - 1, int(share * len(times)))]  # noqa: E731
            print(f"  from a SIGKILL to the next step of the survivors: p50 {at(0.5):.1f} ms, "
                  f"p90 {at(0.9):.1f} ms, max {times[-1]:.1f} ms, of {len(times)}")
        for violation in self.violations:
            print(f"  VIOLATION {violation}")
        print(f"chaos: {len(self.violations)} violations", flush=True)


def main():
    options = arguments()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="elastic-chaos-"))
    chaos = Chaos(options, folder)
    try:
        chaos.run()
    finally:
        chaos.faults.calm()
        chaos.job.end()
    chaos.summary()
    if options.keep or chaos.violations:
        print(f"chaos: traces and logs are in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if chaos.violations else 0


if __name__ == "__main__":
    sys.exit(main())
