"""allgather, of one tensor and of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import elastic
from horovod.common.process_sets import ProcessSet, check_process_set, global_process_set
from horovod.torch import tensors as t
from horovod.torch.allreduce import grouped_allreduce_async
from horovod.torch.handles import Handle, key_of, queue_of, synchronize


class Blocks:
    """What an allgather gave: all rows, and where this worker's begin."""

    def __init__(self, values: torch.Tensor, counts: list[int], own: int) -> None:
        self.values = values
        self.counts = counts
        self.first = sum(counts[:own])
        self.rows = counts[own]


def _perform(block: torch.Tensor, on: Any) -> Blocks:
    rows = block.reshape(1) if block.dim() == 0 else block
    t.agree(on, "allgather", list(rows.shape[1:]), str(rows.dtype))
    gathered = elastic.allgather(rows, context=on)
    own = gathered.contributors.workers.index(elastic.worker_id())
    if 0 not in rows.shape[1:]:
        return Blocks(gathered.values, gathered.counts, own)
    lengths = elastic.allgather(torch.tensor([len(rows)]), context=on)  # of rows without elements
    counts = lengths.values.tolist()
    return Blocks(rows.new_empty((sum(counts), *rows.shape[1:])), counts, own)


def start(
    tensors: Sequence[torch.Tensor], name: str | None, process_set: ProcessSet = global_process_set
) -> Handle:
    """Starts the allgather of several tensors; the result has a Blocks for each."""
    check_process_set(process_set)
    on = process_set.on
    given = [t.copy_of(tensor, "allgather") for tensor in tensors]
    key = key_of("allgather", name, process_set)
    work = queue_of(process_set).submit(lambda: [_perform(block, on) for block in given])
    return Handle(work, lambda blocks: blocks, key)


def grouped_allgather_async(
    tensors: Sequence[torch.Tensor], name: str | None = None, process_set: Any = global_process_set
) -> Handle:
    """Starts the allgather of several tensors, and returns its handle."""
    return start(tensors, name, process_set).then(lambda blocks: [block.values for block in blocks])


def allgather_async(
    tensor: torch.Tensor, name: str | None = None, process_set: Any = global_process_set
) -> Handle:
    """Starts an allgather, and returns its handle.

    The tensors of all members come one after another along the first axis, in rank order; they may
    differ in their length along it. It is matched by its order, which is the same on all ranks.
    """
    return start([tensor], name, process_set).then(lambda blocks: blocks[0].values)


class _Allgather(torch.autograd.Function):
    """The gradient of a block is the average of the members' gradients of its rows."""

    @staticmethod
    def forward(ctx: Any, name: str | None, process_set: Any, *tensors: torch.Tensor) -> Any:
        blocks = synchronize(start(tensors, name, process_set))
        ctx.process_set = process_set
        ctx.places = [
            (block.first, block.rows, tensor.shape) for block, tensor in zip(blocks, tensors)
        ]
        return tuple(block.values for block in blocks)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        given = [gradient.contiguous() for gradient in gradients]
        whole = synchronize(grouped_allreduce_async(given, process_set=ctx.process_set))
        return (
            None,
            None,
            *(
                gradient[first : first + rows].reshape(shape)
                for gradient, (first, rows, shape) in zip(whole, ctx.places)
            ),
        )


def grouped_allgather(
    tensors: Sequence[torch.Tensor], name: str | None = None, process_set: Any = global_process_set
) -> list[torch.Tensor]:
    """The allgather of several tensors, for which gradients can be computed."""
    return list(_Allgather.apply(name, process_set, *tensors))


def allgather(
    tensor: torch.Tensor, name: str | None = None, process_set: Any = global_process_set
) -> torch.Tensor:
    """The tensors of all members one after another, for which gradients can be computed."""
    return grouped_allgather([tensor], name, process_set)[0]
