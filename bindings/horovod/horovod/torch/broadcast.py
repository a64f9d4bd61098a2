"""broadcast, in place and not."""

from __future__ import annotations

from typing import Any

import torch

import elastic
from horovod.common.process_sets import check_process_set, global_process_set
from horovod.torch import tensors as t
from horovod.torch.allreduce import allreduce
from horovod.torch.handles import Handle, in_order, key_of, synchronize


def _start(tensor: torch.Tensor, output: torch.Tensor, root_rank: int, name: str | None) -> Handle:
    key = key_of("broadcast", name)

    def perform() -> None:
        t.agree("broadcast", *t.shape_and_type(tensor), root_rank)
        elastic.broadcast(tensor, root_rank)

    return Handle(in_order.submit(perform), lambda _: output, key)


def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> Handle:
    """Starts a broadcast that overwrites ``tensor``, and returns its handle."""
    check_process_set(process_set)
    return _start(t.check(tensor, "broadcast"), tensor, root_rank, name)


def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> Handle:
    """Starts a broadcast into a copy of ``tensor``, and returns its handle.

    It is matched by its order, which is the same on all ranks.
    """
    check_process_set(process_set)
    copy = t.copy_of(tensor, "broadcast")
    return _start(copy, copy, root_rank, name)


def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> torch.Tensor:
    """``broadcast_async_``, complete."""
    result: torch.Tensor = synchronize(broadcast_async_(tensor, root_rank, name, process_set))
    return result


class _Broadcast(torch.autograd.Function):
    """The gradient is that of the root's tensor: the average of all members' gradients."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, root_rank: int, name: str | None) -> Any:
        ctx.is_root = elastic.rank() == root_rank
        return synchronize(broadcast_async(tensor, root_rank, name))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        average = allreduce(gradient.contiguous())
        return average if ctx.is_root else torch.zeros_like(average), None, None


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> torch.Tensor:
    """The tensor of rank ``root_rank``, for which gradients can be computed."""
    check_process_set(process_set)
    result: torch.Tensor = _Broadcast.apply(tensor, root_rank, name)
    return result
