"""The samples of an epoch, divided anew when workers come or leave."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sized
from typing import Any

import torch.utils.data

from horovod.common.elastic import _Run


class ElasticSampler(torch.utils.data.Sampler):
    """This worker's share of what is left of an epoch.

    Put it into the State, call ``record_batch`` after each batch and ``set_epoch`` at the end of
    each epoch. Each worker has the same number of samples; some are given twice if they do not
    divide.

    Args:
        dataset: has a length, which stays the same.
        shuffle: in an order that depends on ``seed`` and the epoch.
        seed: the same on all workers.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Counts a batch of ``batch_size`` samples on each worker as processed."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Divides the samples that are left among the members of the last commit."""
        self.rank, self.num_replicas = _Run.place()
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices = order[self.processed_num :]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        left = self.remaining_indices
        # As many for each worker: from the beginning once more, as often as it takes.
        every = [left[at % len(left)] for at in range(self.total_size)]
        return iter(every[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
