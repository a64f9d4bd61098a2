"""alltoall, with equal blocks and with splits."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

import elastic
from horovod.common.process_sets import (
    IN_ORDER,
    ProcessSet,
    check_process_set,
    global_process_set,
)
from horovod.torch import tensors as t
from horovod.torch.handles import Handle, key_of, queue_of, synchronize


class Sent:
    """The rows that a member gives to each member of a view."""

    def __init__(self, shape: torch.Size, rows: list[int], view: elastic.Contributors) -> None:
        self.shape = shape
        self.rows = rows
        self.view = view

    def assembled(self, gathered: elastic.Gathered) -> torch.Tensor:
        """Rows that have come back from the members, in the places of those that were sent. Zeros
        stand for those of a member that was lost."""
        result = gathered.values.new_zeros(self.shape)
        firsts = dict(zip(self.view.workers, _firsts(self.rows)))
        blocks = zip(gathered.contributors.workers, gathered.counts, _firsts(gathered.counts))
        for worker, rows, first in blocks:
            result[firsts[worker] :][:rows] = gathered.values[first : first + rows]
        return result


def _firsts(rows: Sequence[int]) -> list[int]:
    return [sum(rows[:at]) for at in range(len(rows))]


def _splits_of(splits: Any) -> list[int] | None:
    """None for equal blocks."""
    if splits is None:
        return None
    if isinstance(splits, torch.Tensor) and splits.dtype.is_floating_point:
        raise ValueError(f"alltoall: splits are {splits.dtype}; give whole numbers of rows")
    try:
        return [operator.index(each) for each in splits] or None
    except TypeError:
        raise ValueError(f"alltoall: splits is {splits!r}; give whole numbers of rows") from None


def _fault(rows: int, splits: list[int] | None, size: int) -> str | None:
    """Why so many rows cannot be divided so, if they cannot."""
    if splits is None:
        if rows % size == 0:
            return None
        return f"{rows} rows are no equal blocks for {size} members; give splits"
    if len(splits) != size:
        return f"there are {len(splits)} splits for {size} members"
    if min(splits) < 0 or sum(splits) > rows:
        return f"the splits {splits} do not fit {rows} rows"
    return None


def _exchange(
    array: torch.Tensor, rows: list[int], view: elastic.Contributors, on: Any
) -> elastic.Gathered:
    """The alltoall. Fails on all alike if another member is in hvd.join."""
    if on is elastic._core and array.is_cuda:  # elastic takes it without a name only
        t.agree(on, "alltoall")
    elif on is elastic._core:
        return elastic.alltoall_async(array, rows, to=view, name=IN_ORDER).wait()
    return elastic.alltoall(array, rows, to=view, context=on)


def _perform(
    tensor: torch.Tensor, splits: list[int] | None, view: elastic.Contributors, on: Any
) -> tuple[elastic.Gathered, Sent]:
    """Blocks that do not fit are given to elastic as well, so that all members learn of them."""
    size = len(view) or 1  # of a joiner, which elastic refuses
    fault = _fault(len(tensor), splits, size)
    rows = [len(tensor) // size] * size if splits is None else splits
    sent = tensor if fault else tensor[: sum(rows)]
    without_elements = 0 in tensor.shape[1:]
    try:
        given = [-1] * size if fault and without_elements else rows
        gathered = _exchange(sent, given, view, on)
    except elastic.MismatchError:
        if fault:
            raise ValueError(f"alltoall: {fault}") from None
        raise
    if without_elements:
        numbers = _exchange(torch.tensor(rows), [1] * size, view, on)
        counts = numbers.values.tolist()
        values = tensor.new_empty((sum(counts), *tensor.shape[1:]))
        gathered = elastic.Gathered(values, counts, numbers.contributors)
    return gathered, Sent(tensor.shape, rows, view)


def _start(
    tensor: torch.Tensor,
    splits: Any,
    name: str | None,
    process_set: ProcessSet,
    to: elastic.Contributors | None = None,
) -> Handle:
    """Starts an alltoall. Its result is a Gathered and a Sent."""
    check_process_set(process_set)
    on = process_set.on
    given = t.copy_of(tensor, "alltoall")
    if given.dim() == 0:
        raise ValueError("alltoall: give a tensor with at least one axis, along which it is divided")
    rows = _splits_of(splits)
    key = key_of("alltoall", name, process_set)
    view = on.members() if to is None else to
    work = queue_of(process_set).submit(lambda: _perform(given, rows, view, on))
    return Handle(work, lambda result: result, key)


def _received_splits(splits: Any, gathered: elastic.Gathered) -> torch.Tensor:
    like = splits if isinstance(splits, torch.Tensor) else torch.empty(0, dtype=torch.int32)
    return torch.tensor(gathered.counts, dtype=like.dtype, device=like.device)


def alltoall_async(
    tensor: torch.Tensor,
    splits: Any = None,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> Handle:
    """Starts an alltoall, and returns its handle.

    Each member gets some rows of each member's tensor, along the first axis, in rank order. It is
    matched by its order, which is the same on all ranks. ``synchronize`` returns the rows and the
    numbers of rows that each member gave.

    Args:
        splits: the rows for each member; without, all get as many.
    """
    handle = _start(tensor, splits, name, process_set)
    return handle.then(lambda result: (result[0].values, _received_splits(splits, result[0])))


class _Alltoall(torch.autograd.Function):
    """The gradients of rows travel back to the members that gave them."""

    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, splits: Any, name: str | None, process_set: Any
    ) -> Any:
        gathered, ctx.sent = synchronize(_start(tensor, splits, name, process_set))
        ctx.process_set = process_set
        ctx.counts, ctx.contributors = gathered.counts, gathered.contributors
        if splits is None:
            return gathered.values
        received = _received_splits(splits, gathered)
        ctx.mark_non_differentiable(received)
        return gathered.values, received

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, *_: Any) -> Any:
        given = gradient.contiguous()
        back = _start(given, ctx.counts, None, ctx.process_set, to=ctx.contributors)
        gathered, _ = synchronize(back)
        return ctx.sent.assembled(gathered), None, None, None


def alltoall(
    tensor: torch.Tensor,
    splits: Any = None,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> Any:
    """The rows that the members gave to this one, for which gradients can be computed; with
    ``splits``, also the number of rows of each, as ``alltoall_async``."""
    return _Alltoall.apply(tensor, splits, name, process_set)
