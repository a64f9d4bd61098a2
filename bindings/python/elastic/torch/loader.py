"""Batches of a dataset, each sample used exactly once per epoch however the workers change."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch.utils.data

import elastic
from elastic.torch.whole_number import whole_number


class ElasticDataLoader:
    """Iterates over this worker's batches of a dataset, until the epochs are used up.

        loader = ElasticDataLoader(dataset, sampler, batch_size=32, epochs=10)
        for batch in loader:
            if batch is not None:
                ...
            sampler.commit(optimizer.contributors)
            state.commit()

    Each batch is drawn when the one before was committed, because a death decides which worker
    gets the rest; so none is read ahead while the program computes. At an epoch's end a batch may be
    empty; then ``None`` comes in its place, and the worker still has to take part in the step.

    Args:
        dataset: has ``len`` and gives sample ``i`` as ``dataset[i]``.
        sampler: an ``elastic.Sampler`` over ``len(dataset)`` samples, which is in the State.
        batch_size: samples per worker.
        collate_fn: makes a batch of a list of samples; PyTorch's own by default.
        num_threads: threads that read samples; 0 reads them in the calling thread.
        others: none; the error about one says what is there instead.

    Raises:
        InvalidArgumentError: dataset and sampler differ in length, batch_size is below 1, a number
            is no whole number, or an argument is one of PyTorch's DataLoader alone, such as
            num_workers.
        TypeError: the sampler is another one, such as PyTorch's DistributedSampler.
    """

    def __init__(
        self,
        dataset: Any,
        sampler: elastic.Sampler,
        batch_size: int,
        epochs: int = 1,
        *,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_threads: int = 0,
        **others: NoReturn,
    ) -> None:
        if others:
            raise elastic.InvalidArgumentError(
                f"ElasticDataLoader: there is no argument {', '.join(others)}; samples are read by "
                "num_threads threads of this process, in the order of the sampler"
            )
        if not isinstance(sampler, elastic.Sampler):
            raise TypeError(
                f"ElasticDataLoader: the sampler is a {type(sampler).__name__}; give an "
                "elastic.torch.ElasticSampler(dataset), which follows the members"
            )
        if len(dataset) != len(sampler):
            raise elastic.InvalidArgumentError(
                f"ElasticDataLoader: the dataset has {len(dataset)} samples and the sampler "
                f"{len(sampler)}; they must be alike"
            )
        #: The sampler, for its ``commit``.
        self.sampler = sampler
        self._dataset = dataset
        self._batch_size = whole_number("ElasticDataLoader", "batch_size", batch_size, least=1)
        self._epochs = whole_number("ElasticDataLoader", "epochs", epochs)
        self._collate = collate_fn or torch.utils.data.default_collate
        threads = whole_number("ElasticDataLoader", "num_threads", num_threads)
        self._threads = concurrent.futures.ThreadPoolExecutor(threads) if threads > 0 else None

    def __iter__(self) -> Iterator[Any]:
        while not self.sampler.finished(self._epochs):
            share = self.sampler.next(self._batch_size).tolist()
            read = self._threads.map if self._threads else map
            samples = list(read(self._sample, share))
            yield self._collate(samples) if samples else None

    def _sample(self, index: int) -> Any:
        try:
            return self._dataset[index]
        except StopIteration as stop:  # which would end the list of samples, without an error
            raise RuntimeError(
                f"ElasticDataLoader: the dataset raised StopIteration for sample {index}, though its "
                "length says that it has it; let it return the sample, or raise another exception"
            ) from stop
