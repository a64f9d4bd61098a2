"""broadcast, in place and not."""

from __future__ import annotations

import operator
from typing import Any

import torch

import elastic
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import ProcessSet, check_process_set, global_process_set
from horovod.common.root import Root
from horovod.torch import tensors as t
from horovod.torch.allreduce import allreduce
from horovod.torch.handles import Handle, key_of, queue_of, synchronize


def fixed_root(root_rank: int, process_set: ProcessSet = global_process_set) -> Root:
    """The worker with this rank now, on all members alike: it stays the root of several broadcasts
    when others leave and the ranks change."""
    root_rank = _whole(root_rank)
    if isinstance(root_rank, Root):
        return root_rank
    t.check_initialized()
    check_process_set(process_set)
    on, view = process_set.on, elastic.members()
    work = queue_of(process_set).submit(lambda: t.agree_on_root(on, "broadcast", root_rank, view))
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


def _start(
    tensor: torch.Tensor, root_rank: int, name: str | None, process_set: ProcessSet
) -> Handle:
    """Starts a broadcast that overwrites ``tensor``. Its result is the root."""
    check_process_set(process_set)
    on = process_set.on
    root_rank = _whole(root_rank)
    key = key_of("broadcast", name, process_set)
    signature = t.shape_and_type(tensor)
    view = elastic.members()

    def perform() -> Root:
        if isinstance(root_rank, Root):
            root = root_rank
            t.agree(on, "broadcast", *signature, int(root), root.worker)
        else:
            root = t.agree_on_root(on, "broadcast", root_rank, view, *signature)
        _copy(tensor, root, process_set, on)
        return root

    return Handle(queue_of(process_set).submit(perform), lambda root: root, key)


def _copy(tensor: torch.Tensor, root: Root, process_set: ProcessSet, on: Any) -> None:
    try:
        on.broadcast_from(tensor, root.worker)
    except elastic.RootLostError as error:
        if process_set is global_process_set:
            raise
        # Not as an error of elastic, after which all members would go back to their last commit.
        raise HorovodInternalError(
            f"broadcast: the worker of root {int(root)} is no member of {process_set}, or was lost "
            f"({error})"
        ) from None


def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> Handle:
    """Starts a broadcast that overwrites ``tensor``, and returns its handle."""
    handle = _start(t.check(tensor, "broadcast"), root_rank, name, process_set)
    return handle.then(lambda _: tensor)


def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> Handle:
    """Starts a broadcast into a copy of ``tensor``, and returns its handle.

    It is matched by its order, which is the same on all ranks. ``root_rank`` is a rank among all
    members, also with a process set.
    """
    copy = t.copy_of(tensor, "broadcast")
    return _start(copy, root_rank, name, process_set).then(lambda _: copy)


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
    def forward(
        ctx: Any, tensor: torch.Tensor, root_rank: int, name: str | None, process_set: Any
    ) -> Any:
        copy = t.copy_of(tensor, "broadcast")
        ctx.is_root = synchronize(_start(copy, root_rank, name, process_set)).is_here
        ctx.process_set = process_set
        return copy

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        average = allreduce(gradient.contiguous(), process_set=ctx.process_set)
        return average if ctx.is_root else torch.zeros_like(average), None, None, None


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> torch.Tensor:
    """The tensor of rank ``root_rank``, for which gradients can be computed."""
    result: torch.Tensor = _Broadcast.apply(tensor, root_rank, name, process_set)
    return result
