"""The handwritten digits under PyTorch, on workers that come and go.

    elasticrun -np 4 --min-np 2 --max-np 8 python torch_digits.py

Kill a worker while it trains: the others go on, and its samples go to them. Each worker ends with
one line of JSON: every sample was used once in each epoch, and the parameters of all workers have
the same bits.
"""

from __future__ import annotations

import argparse
import pathlib
import time

import numpy as np
import torch
from torch.nn import functional
from torch.utils.data import TensorDataset

import elastic
import elastic.torch
from torch_digits_record import Record, Usage, die_in_backward, wait_for_workers

DIGITS = pathlib.Path(__file__).resolve().parent / "data" / "digits.csv.gz"
TEST_SAMPLES = 360
BATCH = 16  # samples per worker in a step
RATE = 0.02  # suits a global batch of BATCH samples, and grows with the number of workers
MOMENTUM = 0.9


class Counted(torch.nn.Module):
    """A network, and which samples its gradient is of.

    The gradient of ``tally`` is the number of times that each sample was used, and in its last place
    the sum of the losses. It is in one unit with the network's gradients, so it is right also where
    a worker dies within the step.
    """

    def __init__(self, network: torch.nn.Module, samples: int) -> None:
        super().__init__()
        self.network = network
        self.tally = torch.nn.Parameter(torch.zeros(samples + 1))

    def forward(
        self, images: torch.Tensor, labels: torch.Tensor, samples: torch.Tensor
    ) -> torch.Tensor:
        loss = functional.cross_entropy(self.network(images), labels, reduction="sum")
        used = self.tally[samples].sum() + self.tally[-1] * loss.detach()
        # By the full batch also where an epoch leaves fewer samples: each sample has the same weight.
        return loss / BATCH + used


def read_digits(path: pathlib.Path) -> tuple[TensorDataset, TensorDataset]:
    """The digits to learn from and those for the test, the same on all workers. Each has an image
    from 0 to 1, the digit, and its own number."""
    table = torch.from_numpy(np.loadtxt(path, dtype=np.float32, delimiter=","))
    table = table[torch.randperm(len(table), generator=torch.Generator().manual_seed(1797))]

    def dataset(rows: torch.Tensor) -> TensorDataset:
        return TensorDataset(rows[:, :64] / 16, rows[:, 64].long(), torch.arange(len(rows)))

    return dataset(table[TEST_SAMPLES:]), dataset(table[:TEST_SAMPLES])


class Trainer:
    """The network, what trains it, and the State that joiners receive."""

    def __init__(self, options: argparse.Namespace, dataset: TensorDataset) -> None:
        self.options = options
        self.dataset = dataset
        self.network = torch.nn.Sequential(
            torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
        )
        # One unit for all gradients: a death cannot leave a sample in some of them only.
        self.model = elastic.torch.DistributedDataParallel(
            Counted(self.network, len(dataset)), unit="step"
        )
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=RATE, momentum=MOMENTUM)
        schedule = elastic.Schedule.step(RATE, [options.epochs * len(dataset) * 2 / 3])
        self.rate = elastic.LearningRate(schedule, BATCH, policy="ramp", momentum=MOMENTUM)
        self.sampler = elastic.Sampler(len(dataset), seed=options.seed)
        self.usage = Usage(len(dataset))
        self.state = elastic.torch.State(
            model=self.model,
            optimizer=self.optimizer,
            rate=self.rate,
            sampler=self.sampler,
            usage=self.usage,
            step=0,
        )
        self.record = Record(options.trace, options.report)
        die_in_backward(self.network[0].weight, self.state, options)

    def run(self) -> elastic.RunOutcome:
        return elastic.run(self.state, self._train)

    def _train(self, state: elastic.State) -> None:
        wait_for_workers(state, self.options)  # the first joiner does, too
        for batch in elastic.torch.ElasticDataLoader(
            self.dataset, self.sampler, BATCH, self.options.epochs
        ):
            earliest_end = time.monotonic() + self.options.step_ms / 1000
            self._step(batch)
            time.sleep(max(0, earliest_end - time.monotonic()))
            state.commit()  # workers join and leave here
            wait_for_workers(state, self.options)

    def _step(self, batch: list[torch.Tensor] | None) -> None:
        self.model.zero_grad()
        if batch is None:  # nothing was left for this worker at the epoch's end
            self.model.contribute_nothing()
        else:
            self.model(*batch).backward()
        averaged_at = time.monotonic_ns()
        (contributors,) = self.model.contributors
        tally = self.model.module.tally.grad * len(contributors)
        samples, loss = int(tally[:-1].sum().round()), float(tally[-1])
        rate = self.rate.step(BATCH * len(contributors), samples)
        for group in self.optimizer.param_groups:
            group["lr"] = rate.value
        self.optimizer.step()
        self.sampler.commit(contributors)  # the samples of a dead worker are drawn again
        self.state.step += 1
        ends_epoch = self.sampler.done_in_epoch == len(self.sampler)
        self.usage.add(tally[:-1], loss, ends_epoch)
        self.record.step(
            self.state.step, contributors, samples, rate, loss / max(samples, 1), averaged_at
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=pathlib.Path, default=DIGITS, help="the digits, as CSV")
    parser.add_argument("--report", type=pathlib.Path, help="folder for report-PID.json")
    parser.add_argument(
        "--trace", type=pathlib.Path, help="folder for trace-PID.jsonl, a line a step"
    )
    parser.add_argument("--step-ms", type=float, default=0, help="draw shorter steps out to this")
    demo = parser.add_argument_group("for demos and tests")
    demo.add_argument("--die-rank", type=int, default=-1, help="this rank kills itself by SIGKILL")
    demo.add_argument(
        "--die-at-step", type=int, default=0, help="... within this step's backward()"
    )
    demo.add_argument("--wait-after-step", type=int, default=0, help="waits after this step ...")
    demo.add_argument("--wait-for", type=int, default=0, help="... for so many workers")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    elastic.init()
    torch.set_num_threads(1)  # workers share the machine's cores
    torch.manual_seed(options.seed)
    training, test = read_digits(options.data)
    trainer = Trainer(options, training)
    outcome = trainer.run()
    images, labels, _ = test.tensors
    with torch.no_grad():
        accuracy = float((trainer.network(images).argmax(1) == labels).double().mean())
    trainer.record.end(outcome, trainer.state.step, trainer.usage, accuracy, trainer.network)
    elastic.shutdown()


if __name__ == "__main__":
    main()
