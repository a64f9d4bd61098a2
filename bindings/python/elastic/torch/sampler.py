"""The Sampler of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import elastic
from elastic.torch.whole_number import whole_number


class ElasticSampler(elastic.Sampler):
    """An ``elastic.Sampler`` of a dataset: each sample exactly once per epoch, however the workers
    change. PyTorch's DataLoader cannot use it, as the next samples depend on the members at that
    time: an ElasticDataLoader does, or ``next`` and ``commit``.

    Args:
        dataset: has ``len``; or its number of samples.
        seed: of the order, the same on all workers.

    Raises:
        InvalidArgumentError: the number is below 0, or the seed not within 0 and 2**64.
        TypeError: the dataset has no ``len``, such as an IterableDataset.
    """

    def __init__(self, dataset: Any, seed: int = 0) -> None:
        if not isinstance(dataset, int) and not hasattr(dataset, "__len__"):
            raise TypeError(
                f"ElasticSampler: the dataset is a {type(dataset).__name__}, which has no len(); "
                "samples are distributed by their number, so give a dataset with len() and [i]"
            )
        size = dataset if isinstance(dataset, int) else len(dataset)
        if size < 0:
            raise elastic.InvalidArgumentError(f"ElasticSampler: there cannot be {size} samples")
        super().__init__(
            whole_number("ElasticSampler", "the number of samples", size),
            whole_number("ElasticSampler", "seed", seed, bits=64),
        )

    def next(self, batch_per_worker: int) -> NDArray[np.int64]:
        return super().next(
            whole_number("ElasticSampler.next", "batch_per_worker", batch_per_worker)
        )

    def finished(self, epochs: int) -> bool:
        return super().finished(whole_number("ElasticSampler.finished", "epochs", epochs))

    def commit(
        self, contributors: elastic.Contributors | Sequence[elastic.Contributors]
    ) -> None:
        if contributors is None:
            raise TypeError(
                "ElasticSampler.commit: there are no contributors; give those of the step, such as "
                "optimizer.contributors, or what the allreduce returned"
            )
        super().commit(contributors)

    def __iter__(self) -> NoReturn:
        raise elastic.InvalidArgumentError(
            "ElasticSampler: it gives batches to the present members, step by step, and cannot be "
            "iterated over, as PyTorch's DataLoader does; give it to an "
            "elastic.torch.ElasticDataLoader(dataset, sampler, batch_size), or call next() and "
            "commit()"
        )
