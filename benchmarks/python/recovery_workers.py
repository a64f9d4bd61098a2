"""The workers of recovery.py: a loop of steps with ResNet-18's gradients. Worker VICTIM is killed
by SIGKILL in its backward pass; the others note when their next step is finished.

    python recovery_workers.py elastic|gloo|torchft FOLDER
"""

from __future__ import annotations

import datetime
import os
import pathlib
import signal
import sys
import time

import torch

from gradients import Gradients

VICTIM = 3
FATAL_STEP = 5


class Trial:
    """The files by which the processes of one trial tell the times."""

    def __init__(self, folder: pathlib.Path, rank: int, first_life: bool) -> None:
        self._folder = folder
        self._rank = rank
        self._dies = first_life and rank == VICTIM
        self._told = False
        self.step = 0

    def arm(self, module: torch.nn.Module) -> None:
        """In the fatal step the middle gradient of the backward pass is the last."""
        parameters = list(module.parameters())
        parameters[len(parameters) // 2].register_hook(self._in_backward)

    def _in_backward(self, gradient: torch.Tensor) -> None:
        if self._dies and self.step == FATAL_STEP:
            self._tell("killed")
            os.kill(os.getpid(), signal.SIGKILL)

    def finished(self) -> None:
        """The optimizer has made its step."""
        if not self._told and self.step >= FATAL_STEP and (self._folder / "killed").exists():
            self._tell(f"finished-{self._rank}")
            self._told = True
        self.step += 1

    def _tell(self, what: str) -> None:
        unfinished = self._folder / f".{what}"
        unfinished.write_text(str(time.monotonic_ns()))  # one clock for all processes
        unfinished.rename(self._folder / what)


def backward(module: torch.nn.Module) -> None:
    module(torch.ones(1, requires_grad=True)).backward(torch.ones(1))


def with_elastic(folder: pathlib.Path) -> None:
    import elastic
    import elastic.torch

    elastic.init()
    module = Gradients()
    trial = Trial(folder, elastic.rank(), first_life=True)
    trial.arm(module)
    optimizer = elastic.torch.DistributedOptimizer(
        torch.optim.SGD(module.parameters(), lr=0.1), module.named_parameters()
    )

    def train(state: elastic.State) -> None:
        while True:
            optimizer.zero_grad()
            backward(module)
            optimizer.step()
            trial.finished()
            state.commit()

    elastic.run(elastic.torch.State(module=module, optimizer=optimizer), train)


def with_gloo(folder: pathlib.Path) -> None:
    """Under torchrun, which ends all workers when one dies, and starts them again."""
    life = os.environ["TORCHELASTIC_RESTART_COUNT"]
    first_life = life == "0"
    # torchrun 2.15 keeps its store, in which the workers of a later life find those of the first.
    store, rank, size = next(torch.distributed.rendezvous("env://"))
    store = torch.distributed.PrefixStore(f"life {life}", store)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=size)
    module = Gradients()
    trial = Trial(folder, rank, first_life)
    if not first_life:
        trial.step = FATAL_STEP  # as of a checkpoint of the latest step, for which no time is taken
    trial.arm(module)
    parallel = torch.nn.parallel.DistributedDataParallel(module)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    while True:
        optimizer.zero_grad()
        backward(parallel)
        optimizer.step()
        trial.finished()


def with_torchft(folder: pathlib.Path) -> None:
    """Each worker is a replica group of its own, under one lighthouse. The hook of torchft 0.2's
    DDP ends with an AssertionError after a loss under PyTorch 2.15; gradients are averaged by its
    manager, in four buckets."""
    import torchft

    rank = int(os.environ["REPLICA"])
    module = Gradients()
    trial = Trial(folder, rank, first_life=True)
    trial.arm(module)
    sgd = torch.optim.SGD(module.parameters(), lr=0.1)
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    manager = torchft.Manager(
        store_addr="127.0.0.1",
        store_port=store.port,
        rank=0,
        world_size=1,
        pg=torchft.ProcessGroupGloo(timeout=datetime.timedelta(seconds=10)),
        min_replica_size=1,
        state_dict=module.state_dict,
        load_state_dict=module.load_state_dict,
        replica_id=f"replica-{rank}",
        timeout=datetime.timedelta(seconds=10),
        quorum_timeout=datetime.timedelta(seconds=30),
    )
    optimizer = torchft.Optimizer(manager, sgd)
    while True:
        optimizer.zero_grad()
        backward(module)
        gradients = [parameter.grad for parameter in module.parameters()]
        quarters = [gradients[at::4] for at in range(4)]
        buckets = [torch.nn.utils.parameters_to_vector(quarter) for quarter in quarters]
        for work in [manager.allreduce(bucket) for bucket in buckets]:
            work.wait()
        for bucket, quarter in zip(buckets, quarters):
            torch.nn.utils.vector_to_parameters(bucket, quarter)
        before = manager.current_step()
        optimizer.step()
        # It counts unless it was thrown away, or the replicas had not found each other yet.
        if manager.current_step() > before and (trial.step > 0 or manager.num_participants() == 4):
            trial.finished()


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"elastic": with_elastic, "gloo": with_gloo, "torchft": with_torchft}[sys.argv[1]](
        pathlib.Path(sys.argv[2])
    )
