"""How long until training goes on: one of four workers is killed by SIGKILL in its backward pass;
the time from there until all others have finished their next step.

    python benchmarks/python/recovery.py --trials 10

By elastic (the step ends on the survivors), by torchrun with PyTorch's DDP over gloo (all workers
are started again), and by torchft, if it is installed (the survivors throw the step away). In
turns; prints a table of medians. torchrun has no checkpoint to load here.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

BIN = pathlib.Path(sys.executable).parent
WORKERS = str(pathlib.Path(__file__).with_name("recovery_workers.py"))
SURVIVORS = {"elastic": 3, "gloo": 4, "torchft": 3}
TITLES = {
    "elastic": "elastic: the same step ends on the survivors",
    "gloo": "torchrun, DDP over gloo: all are started again",
    "torchft": "torchft over gloo: the step is thrown away",
}


@contextlib.contextmanager
def process(log: pathlib.Path, *command: str, **environment: str) -> Iterator[None]:
    """Runs a command with its children, and ends them all."""
    with log.open("a") as output:
        started = subprocess.Popen(
            command,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGTERM)
        try:
            started.wait(timeout=10)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def start(by: str, folder: pathlib.Path, stack: contextlib.ExitStack) -> None:
    log = folder / "log"
    worker = [WORKERS, by, str(folder)]
    if by == "elastic":
        launcher = [str(BIN / "elasticrun"), "-np", "4", "--max-restarts", "0"]
        stack.enter_context(process(log, *launcher, sys.executable, *worker))
    elif by == "gloo":
        launcher = [str(BIN / "torchrun"), "--standalone", "--nproc-per-node", "4"]
        stack.enter_context(process(log, *launcher, "--max-restarts", "3", *worker))
    else:
        port = free_port()
        lighthouse = [str(BIN / "torchft_lighthouse"), "--min_replicas", "1"]
        lighthouse += ["--join_timeout_ms", "1000", "--bind", f"127.0.0.1:{port}"]
        stack.enter_context(process(log, *lighthouse))
        for replica in range(4):
            environment = {
                "REPLICA": str(replica),
                "TORCHFT_LIGHTHOUSE": f"http://127.0.0.1:{port}",
            }
            command = [sys.executable, *worker]
            stack.enter_context(process(log, *command, **environment))


def trial(by: str, timeout: float) -> float:
    """Seconds from the kill to the end of the next step, on the last of the others."""
    folder = pathlib.Path(tempfile.mkdtemp())
    with contextlib.ExitStack() as stack:
        start(by, folder, stack)
        deadline = time.monotonic() + timeout
        while len(finished := list(folder.glob("finished-*"))) < SURVIVORS[by]:
            if time.monotonic() > deadline:
                sys.exit(f"recovery: {by} did not go on in {timeout} s; see {folder / 'log'}")
            time.sleep(0.05)
        killed = int((folder / "killed").read_text())
        took = (max(int(file.read_text()) for file in finished) - killed) / 1e9
    shutil.rmtree(folder)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a trial")
    parser.add_argument("--by", nargs="+", choices=list(TITLES), default=list(TITLES))
    arguments = parser.parse_args()
    chosen = [by for by in TITLES if by in arguments.by]
    if "torchft" in chosen and importlib.util.find_spec("torchft") is None:
        print("torchft is not installed (pip install torchft): left out")
        chosen.remove("torchft")
    times: dict[str, list[float]] = {by: [] for by in chosen}
    for _ in range(arguments.trials):
        for by in chosen:
            times[by].append(trial(by, arguments.timeout))
    print(f"{arguments.trials} trials, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print("| | median, s | least, s | most, s | median : elastic's |")
    print("| --- | --: | --: | --: | --: |")
    for by, of in times.items():
        ratio = statistics.median(of) / statistics.median(times.get("elastic", of))
        print(
            f"| {TITLES[by]} | {statistics.median(of):.3f} | {min(of):.3f} | {max(of):.3f} "
            f"| {ratio:.0f} |"
        )


if __name__ == "__main__":
    main()
