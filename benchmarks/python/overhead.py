"""The time that a call from Python takes more than one from C++: one worker, a tensor of two floats.

    pip install pyperf
    python benchmarks/python/overhead.py [--fast]

With one worker there is no communication, so the time is that of the call itself. The calls of C++ are
those of elastic-bench, before and after those of Python. Needs an installed package, and a quiet machine.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import tempfile
from collections.abc import Callable

import numpy as np
import pyperf

import elastic

try:
    import torch
    import torch.distributed

    import elastic.torch
except ImportError:
    torch = None

#: The most that a call may take more than the one in C++, in microseconds.
GOALS = {"numpy in place": 1.0, "torch in place": 2.0, "c10d": 6.0}


def calls() -> dict[str, Callable[[], object]]:
    """The calls by name, on tensors that are made once."""
    array, result = np.ones(2, np.float32), np.ones(2, np.float32)
    several = [array, result]
    found: dict[str, Callable[[], object]] = {
        "numpy in place": lambda: elastic.allreduce(array),
        "numpy into another": lambda: elastic.allreduce(array, out=result),
        "numpy, two in a group": lambda: elastic.grouped_allreduce(several),
        "numpy, asynchronous": lambda: elastic.allreduce_async("array", array).wait(),
        "number": lambda: elastic.allreduce(1.0),
    }
    if torch is not None:
        tensor = torch.ones(2)
        found["torch in place"] = lambda: elastic.allreduce(tensor)
        found["torch, asynchronous"] = lambda: elastic.allreduce_async("tensor", tensor).wait()
        found["c10d"] = lambda: torch.distributed.all_reduce(tensor)
    return found


def cpp_call() -> float:
    """The median of a call in C++, in microseconds."""
    program = pathlib.Path(elastic.__file__).parent / "bin" / "elastic-bench"
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        size = ["--minbytes", "8", "--maxbytes", "8", "--iters", "20000", "--json", str(report)]
        subprocess.run([program, "allreduce", *size], check=True, stdout=subprocess.DEVNULL)
        results = json.loads(report.read_text())["results"]
    return min(float(row["median_us"]) for row in results if row["in_place"])


def main() -> None:
    runner = pyperf.Runner(processes=6, values=3, warmups=1)
    arguments = runner.parse_args()
    if arguments.worker:
        elastic.init()
        if torch is not None:
            elastic.torch.init_process_group()
    before = None if arguments.worker else cpp_call()
    measured = {name: runner.bench_func(name, call) for name, call in calls().items()}
    if before is None:
        elastic.shutdown()
        return
    after = cpp_call()
    base = min(before, after)
    print(f"\nC++: {before:.2f} us before, {after:.2f} us after")
    print(f"{'call':24} {'median':>8} {'over C++':>9} {'goal':>6}   (us)")
    for name, benchmark in measured.items():
        if benchmark is None:
            continue
        median = benchmark.median() * 1e6
        goal = f"{GOALS[name]:.1f}" if name in GOALS else ""
        print(f"{name:24} {median:8.2f} {median - base:9.2f} {goal:>6}")


if __name__ == "__main__":
    main()
