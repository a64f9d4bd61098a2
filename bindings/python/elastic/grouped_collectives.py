"""Collectives of several tensors as one unit, for sharded training: grouped_reduce_scatter and
grouped_allgather, and their asynchronous forms in program order.

After a failure either all outputs hold results of the same contributors, or none does. ``context``
is the Context or the Group whose members make the call; without, those of the default context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elastic import _core
from elastic._core import Collectives, Contributors, ReduceOp
from elastic.pending import Pending
from elastic.rows import Gathered, Rows, Scattered, beginning


def grouped_reduce_scatter(
    tensors: Sequence[Any],
    out: Sequence[Any],
    op: ReduceOp = ReduceOp.SUM,
    *,
    context: Collectives | None = None,
) -> list[Scattered]:
    """Combines each tensor of all members as an allreduce does; each member gets one part of each.

    Args:
        tensors: contiguous arrays of any shapes and of one element type, the same on all members.
        out: an array for each, of the same element type, with room for the largest part of its
            tensor: its size divided by the number of members, rounded up.

    Returns:
        This member's part of each tensor: a view of the beginning of its ``out``.

    Raises:
        InvalidArgumentError: a part has no room in its ``out``, which the message names; all of
            ``out`` is as it was.
        MismatchError: members give other numbers of tensors, or other shapes; on all members.
    """
    on = _core if context is None else context
    parts, contributors = on._grouped_reduce_scatter(tensors, out, op)
    return _scattered(out, parts, contributors)


def grouped_allgather(
    blocks: Sequence[Any], out: Sequence[Any], *, context: Collectives | None = None
) -> list[Gathered]:
    """Gathers the blocks of all members, of several tensors at once, on all of them, in rank order.

    Args:
        blocks: contiguous arrays, of any element types, of shape ``(rows, ...)``. Members may give
            other numbers of rows, and rows of the same shape.
        out: an array for each, of the same element type, that receives the blocks.

    Returns:
        The blocks of each tensor: a view of the beginning of its ``out``.

    Raises:
        InvalidArgumentError: blocks have no room in their ``out``, which the message names; all of
            ``out`` is as it was.
        MismatchError: members give other numbers of tensors, or other element types; on all members.
    """
    on = _core if context is None else context
    rows = _rows(blocks, "grouped_allgather")
    gathered, contributors = on._grouped_allgather(blocks, out)
    return _gathered(rows, out, gathered, contributors)


def grouped_reduce_scatter_async(
    tensors: Sequence[Any],
    out: Sequence[Any],
    op: ReduceOp = ReduceOp.SUM,
    *,
    context: Collectives | None = None,
) -> Pending[list[Scattered]]:
    """Starts a ``grouped_reduce_scatter``, in program order."""
    on = _core if context is None else context
    out = list(out)
    work = on._grouped_reduce_scatter_async(tensors, out, op)
    return Pending(work, lambda result: _scattered(out, *result))


def grouped_allgather_async(
    blocks: Sequence[Any], out: Sequence[Any], *, context: Collectives | None = None
) -> Pending[list[Gathered]]:
    """Starts a ``grouped_allgather``, in program order."""
    on = _core if context is None else context
    out = list(out)
    rows = _rows(blocks, "grouped_allgather_async")
    work = on._grouped_allgather_async(blocks, out)
    return Pending(work, lambda result: _gathered(rows, out, *result))


def _rows(blocks: Sequence[Any], call: str) -> list[Rows]:
    return [Rows(block, call, f"blocks[{index}]") for index, block in enumerate(blocks)]


def _scattered(
    out: Sequence[Any], parts: list[tuple[int, int]], contributors: Contributors
) -> list[Scattered]:
    return [
        Scattered(beginning(each, count), offset, contributors)
        for each, (count, offset) in zip(out, parts)
    ]


def _gathered(
    rows: list[Rows],
    out: Sequence[Any],
    gathered: list[tuple[int, list[int]]],
    contributors: Contributors,
) -> list[Gathered]:
    return [
        its.gathered(beginning(each, count), counts, contributors)
        for its, each, (count, counts) in zip(rows, out, gathered)
    ]
