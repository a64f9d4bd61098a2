#!/usr/bin/env python3
"""Trains against the installed library while another process kills, stops, adds and removes workers.

Installs the build into a folder of its own, compiles a small trainer against that as any user would
(pkg-config), and runs it under elasticrun over shared memory, TCP, TLS and Gloo in turn. The trainer
checks every result; here the workers' records are held against each other. Ends with 1 on a wrong
result, a step that is lost, repeated or differs, a job that hangs, or one that does not end well. The
seed repeats the choices, not the moments at which they meet the job.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from record import Record  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORKERS = 4
MOST = 8
HANG = 60.0  # seconds without a step
KINDS = {"kill": 6, "stop": 3, "add": 4, "remove": 2}
# Options of elasticrun and environment of its workers.
WAYS = {
    "shm": ([], {}),
    "tcp": ([], {"ELASTIC_TRANSPORT": "tcp"}),
    "tls": (["--encrypt"], {"ELASTIC_TRANSPORT": "tcp"}),
    "gloo": ([], {"ELASTIC_BACKEND": "gloo"}),
}


def arguments():
    parser = argparse.ArgumentParser(prog="storm", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1, help="in all [1]")
    parser.add_argument("--seed", type=int, default=None, help="[drawn, and printed]")
    parser.add_argument("--only", choices=WAYS, action="append", help="one of the ways [all]")
    parser.add_argument("--pause", type=float, default=0.3, help="mean seconds between faults [0.3]")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build",
                        help="folder of the build to install [build]")
    parser.add_argument("--prefix", type=pathlib.Path, help="take what is installed there instead")
    parser.add_argument("--verbose", action="store_true", help="a line for each fault")
    parser.add_argument("--keep", action="store_true", help="keep the files in any case")
    return parser.parse_args()


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          stdout=subprocess.PIPE, **options).stdout


def install(options, folder):
    """Installs, and compiles the trainer. Returns elasticrun and the trainer."""
    prefix = options.prefix
    if prefix is None:
        prefix = folder / "installed"
        run("cmake", "--install", options.build, "--prefix", prefix)
    prefix = prefix.resolve()
    paths = ":".join(str(path.parent) for path in prefix.rglob("elastic.pc"))
    flags = run("pkg-config", "--cflags", "--libs", "elastic",
                env={**os.environ, "PKG_CONFIG_PATH": paths}).split()
    library = next(prefix.rglob("libelastic.so")).parent
    trainer = folder / "storm_trainer"
    sources = [ROOT / "tools" / "storm" / name for name in ("trainer.cpp", "calls.cpp")]
    run(os.environ.get("CXX", "c++"), "-std=c++20", "-O2", *sources, "-o", trainer, *flags,
        f"-Wl,-rpath,{library}", "-pthread")
    return prefix / "bin" / "elasticrun", trainer


class Storm:
    """One job."""

    def __init__(self, options, way, folder, programs, chance):
        self.options = options
        self.random = chance
        self.launcher, trainer = programs
        self.folder = folder
        folder.mkdir()
        self.records = folder / "records"
        self.records.mkdir()
        self.record = Record(self.records)
        self.job = f"storm-{way}-{os.getpid()}"
        self.faults = {kind: 0 for kind in KINDS}
        self.stopped = {}  # pid -> when it goes on
        self.leaving = 0  # removals that were accepted and may not have happened yet
        words, environment = WAYS[way]
        self.output = folder / "output"
        with open(self.output, "w") as output:
            self.process = subprocess.Popen(
                [self.launcher, "--job", self.job, "-np", str(WORKERS), "--min-np", "1", "--max-np",
                 str(MOST), "--max-restarts", "100000", *words, trainer, self.records],
                stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment})

    def last(self, seconds):
        """Until the time is over, or something is wrong."""
        end = time.monotonic() + seconds
        self.watch(until=lambda: self.record.newest >= 5)
        while time.monotonic() < end and not self.record.violations:
            what = self.strike()
            if what and self.options.verbose:
                print(f"  {what}", flush=True)
            pause = min(end, time.monotonic() + self.random.expovariate(1 / self.options.pause))
            self.watch(until=lambda: time.monotonic() >= pause)
        self.finish()

    def watch(self, until):
        heard = time.monotonic()
        while not until() and not self.record.violations:
            if self.record.read():
                heard = time.monotonic()
            for pid, at in list(self.stopped.items()):
                if time.monotonic() >= at:
                    self.signal(pid, signal.SIGCONT)
                    del self.stopped[pid]
            if time.monotonic() - heard > HANG:
                self.record.violations.append(f"no step for {HANG:.0f} s; {self.control('status')}")
            if self.process.poll() is not None:
                self.record.violations.append(f"elasticrun ended with {self.process.returncode}")
            time.sleep(0.02)

    def signal(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def control(self, *words):
        done = subprocess.run([self.launcher, "ctl", "--job", self.job, *words], text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout if done.returncode == 0 else None

    def strike(self):
        kind = self.random.choices(list(KINDS), KINDS.values())[0]
        holders = [pid for pid in self.record.holders() if pid not in self.stopped]
        # One that holds the state has to stay, whatever of the removals is still to come.
        if kind != "add" and len(holders) - self.leaving < 3:
            kind = "add"
        what = getattr(self, kind)(holders)
        if what:
            self.faults[kind] += 1
        return what

    def kill(self, holders):
        victims = self.random.sample(holders, self.random.randint(1, min(2, len(holders) - self.leaving - 2)))
        for pid in victims:
            self.record.struck.add(pid)
            self.signal(pid, signal.SIGKILL)
        self.leaving = 0  # the next view has them; what is still to come is counted again
        return f"killed {victims}"

    def stop(self, holders):
        pid = self.random.choice(holders)
        seconds = self.random.choice((0.05, 0.2, 1.5))
        self.record.struck.add(pid)
        self.stopped[pid] = time.monotonic() + seconds
        self.signal(pid, signal.SIGSTOP)
        return f"stopped {pid} for {seconds} s"

    def add(self, _):
        if len(self.record.alive()) >= MOST:
            return None
        return self.control("add", "1") and "added one"

    def remove(self, holders):
        rank = self.random.randrange(len(holders))
        if self.control("remove", str(rank)) is None:
            return None
        self.leaving += 1
        return f"removed rank {rank}"

    def finish(self):
        self.watch(until=lambda: not self.stopped)
        if not self.record.violations:
            (self.records / "finish").touch()
            try:
                code = self.process.wait(HANG)
                if code != 0:
                    self.record.violations.append(f"elasticrun ended with {code}")
            except subprocess.TimeoutExpired:
                self.record.violations.append(f"the job does not end; {self.control('status')}")
        self.process.kill()
        self.process.wait()
        for pid in self.record.alive():
            self.signal(pid, signal.SIGKILL)
        self.record.read()
        self.record.check_end()


def main():
    options = arguments()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    ways = options.only or list(WAYS)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="elastic-storm-"))
    programs = install(options, folder)
    if not options.only and "gloo" in ways:
        report = run(programs[0], "--check-build")
        if not any(line.split()[:2] == ["gloo", "yes"] for line in report.splitlines()):
            print("storm: gloo is not in this build, and is left out")
            ways.remove("gloo")
    print(f"storm: seed {seed}, {options.minutes:g} minutes over {', '.join(ways)}", flush=True)
    failed = 0
    for way in ways:
        storm = Storm(options, way, folder / way, programs, random.Random(f"{seed} {way}"))
        storm.last(60 * options.minutes / len(ways))
        faults = ", ".join(f"{count} x {kind}" for kind, count in storm.faults.items())
        print(f"{way:5} {storm.record.newest} steps in {storm.record.generation} views; {faults}; "
              f"{len(storm.record.violations)} violations", flush=True)
        for violation in storm.record.violations[:10]:
            print(f"  {violation}")
        failed += bool(storm.record.violations)
    if failed or options.keep:
        print(f"storm: the files are in {folder}; again with --seed {seed}")
    else:
        shutil.rmtree(folder)
    print(f"{len(ways) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
