"""Recognizes handwritten digits; a script as one has it for Horovod.

    horovodrun -np 2 python horovod_digits.py --step-ms 20
"""

from __future__ import annotations

import argparse
import pathlib
import time

import horovod.torch as hvd
import numpy as np
import torch
from torch.nn import functional
from torch.utils import data

DIGITS = pathlib.Path(__file__).resolve().parent / "data" / "digits.csv.gz"
HELD_OUT = 297


def read_digits() -> tuple[data.TensorDataset, data.TensorDataset]:
    """The digits for the training, and those for the test."""
    table = torch.from_numpy(np.loadtxt(DIGITS, delimiter=",", dtype=np.int64))
    images, labels = table[:, :64].float() / 16, table[:, 64]
    return (
        data.TensorDataset(images[:-HELD_OUT], labels[:-HELD_OUT]),
        data.TensorDataset(images[-HELD_OUT:], labels[-HELD_OUT:]),
    )


def share_of(dataset: data.TensorDataset) -> data.DistributedSampler:
    """This worker's part of the digits."""
    return data.DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank())


def accuracy_of(model: torch.nn.Module, dataset: data.TensorDataset) -> float:
    """The accuracy over all workers' parts."""
    right = total = 0
    model.eval()
    with torch.no_grad():
        for images, labels in data.DataLoader(dataset, batch_size=64, sampler=share_of(dataset)):
            right += int((model(images).argmax(1) == labels).sum())
            total += len(labels)
    sums = hvd.allreduce(torch.tensor([right, total]), name="accuracy", op=hvd.Sum)
    return float(sums[0]) / float(sums[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32, help="of each worker")
    parser.add_argument("--lr", type=float, default=0.01, help="for one worker")
    parser.add_argument(
        "--step-ms", type=float, default=0, help="wait after each step, to be watched"
    )
    arguments = parser.parse_args()

    hvd.init()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    training, test = read_digits()
    sampler = share_of(training)
    loader = data.DataLoader(training, batch_size=arguments.batch_size, sampler=sampler)

    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr * hvd.size(), momentum=0.9)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    for epoch in range(arguments.epochs):
        model.train()
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            time.sleep(arguments.step_ms / 1000)
    accuracy = accuracy_of(model, test)
    if hvd.rank() == 0:
        print(f"accuracy {accuracy:.3f} with {hvd.size()} workers")


if __name__ == "__main__":
    main()
