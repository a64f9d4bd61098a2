"""The cost of a step: the gradients of ResNet-18 are averaged by elastic and by PyTorch's DDP over
gloo (and over MPI, if this PyTorch has it), in the same processes and in turns.

    python benchmarks/python/step.py --workers 2 4

A step is the forward and backward pass of a module that computes nothing, to the averages in the
gradients. Prints a table of medians, and the ratio of each to elastic's: above 1, elastic is
faster.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

import elastic
import elastic.torch
from gradients import Gradients

Step = Callable[[], None]


def by_optimizer() -> Step:
    module = Gradients()
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.SGD(module.parameters(), lr=0.1), module.named_parameters()
    )

    def step() -> None:
        optimizer.zero_grad()
        module(torch.ones(1, requires_grad=True)).backward(torch.ones(1))
        optimizer.synchronize()

    return step


def by_ddp(module: torch.nn.Module) -> Step:
    def step() -> None:
        module.zero_grad(set_to_none=True)
        module(torch.ones(1, requires_grad=True)).backward(torch.ones(1))

    return step


def variants() -> dict[str, Step]:
    steps = {
        "elastic, DDP": by_ddp(elastic.torch.DistributedDataParallel(Gradients())),
        "elastic, DistributedOptimizer": by_optimizer(),
    }
    for backend in ("gloo", "mpi"):
        if backend == "mpi" and not dist.is_mpi_available():
            continue
        group = dist.new_group(backend=backend)
        steps[f"torch DDP, {backend}"] = by_ddp(
            torch.nn.parallel.DistributedDataParallel(Gradients(), process_group=group)
        )
    return steps


def measure(turns: int, steps_per_turn: int) -> None:
    """In a worker of elasticrun: prints a table on rank 0."""
    torch.set_num_threads(1)  # as many as the machine has cores for
    elastic.init()
    rank, size = elastic.rank(), elastic.size()
    store = dist.FileStore(os.environ["STEP_STORE"], size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    steps = variants()
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(turns + 1):  # the first warms up
        names = list(steps)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            elastic.barrier()
            for _ in range(steps_per_turn):
                begin = time.perf_counter()
                steps[name]()
                if turn > 0:
                    times[name].append(1e3 * (time.perf_counter() - begin))
    if rank == 0:
        for name, of in times.items():
            ratio = statistics.median(of) / statistics.median(times["elastic, DDP"])
            row = [str(size), name, f"{statistics.median(of):.1f}", f"{min(of):.1f}", f"{ratio:.2f}"]
            print("| " + " | ".join(row) + " |")
    elastic.barrier()
    dist.destroy_process_group()
    elastic.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--steps", type=int, default=5, help="steps of each variant in a turn")
    arguments = parser.parse_args()
    if "STEP_STORE" in os.environ:
        return measure(arguments.turns, arguments.steps)
    load = os.getloadavg()[0]
    print(f"PyTorch {torch.__version__}, {os.cpu_count()} processors, load {load:.1f}")
    print("| workers | averaged by | median, ms | least, ms | median : elastic's |")
    print("| --: | --- | --: | --: | --: |", flush=True)
    launcher = pathlib.Path(sys.executable).with_name("elasticrun")
    for workers in arguments.workers:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [str(launcher), "-np", str(workers), "--max-restarts", "0", "--no-prefix"]
                + [sys.executable, __file__, "--turns", str(arguments.turns)]
                + ["--steps", str(arguments.steps)],
                env={**os.environ, "STEP_STORE": f"{folder}/store"},
                check=True,
            )


if __name__ == "__main__":
    main()
