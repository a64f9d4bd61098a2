"""broadcast, in place and not."""

from __future__ import annotations

import operator
from typing import Any

import torch

import elastic
from horovod.common.process_sets import check_process_set, global_process_set
from horovod.common.root import Root
from horovod.torch import tensors as t
from horovod.torch.allreduce import allreduce
from horovod.torch.handles import Handle, in_order, key_of, synchronize


def fixed_root(root_rank: int) -> Root:
    """The worker with this rank now, on all members alike: it stays the root of several broadcasts
    when others leave and the ranks change."""
    root_rank = _whole(root_rank)
    if isinstance(root_rank, Root):
        return root_rank
    t.check_initialized()
    view = elastic.members()
    work = in_order.submit(lambda: t.agree_on_root("broadcast", root_rank, view))
    root: Root = synchronize(Handle(work, lambda root: root))
    return root


def _whole(root_rank: Any) -> int:
    """Also of NumPy's integers and the like, so that ranks that give the same number agree."""
    if isinstance(root_rank, Root):
        return root_rank
    try:
        return operator.index(root_rank)
    except TypeError:
        raise TypeError(f"broadcast: root_rank is {root_rank!r}; give a whole number") from None


def _start(tensor: torch.Tensor, root_rank: int, name: str | None) -> Handle:
    """Starts a broadcast that overwrites ``tensor``. Its result is the root."""
    root_rank = _whole(root_rank)
    key = key_of("broadcast", name)
    signature = t.shape_and_type(tensor)
    view = elastic.members()

    def perform() -> Root:
        if isinstance(root_rank, Root):
            root = root_rank
            t.agree("broadcast", *signature, int(root), root.worker)
        else:
            root = t.agree_on_root("broadcast", root_rank, view, *signature)
        elastic.broadcast_from(tensor, root.worker)
        return root

    return Handle(in_order.submit(perform), lambda root: root, key)


def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> Handle:
    """Starts a broadcast that overwrites ``tensor``, and returns its handle."""
    check_process_set(process_set)
    handle = _start(t.check(tensor, "broadcast"), root_rank, name)
    return handle.then(lambda _: tensor)


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
    return _start(copy, root_rank, name).then(lambda _: copy)


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
        copy = t.copy_of(tensor, "broadcast")
        ctx.is_root = synchronize(_start(copy, root_rank, name)).is_here
        return copy

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
