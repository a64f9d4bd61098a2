"""Collectives whose results have a size of their own: allgather, reduce_scatter, alltoall, gather and
scatter.

``context`` is the Context or the Group whose members make the call; without, those of the default
context.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from elastic import _core
from elastic._core import Collectives, Contributors, ReduceOp, Root
from elastic.rows import Gathered, Rows, Scattered, beginning, beside


def allgather(block: Any, out: Any = None, *, context: Collectives | None = None) -> Gathered:
    """Gathers the blocks of all members on all of them, in rank order.

    Blocks may differ in their length along the first axis, and in nothing else.

    Args:
        block: a contiguous array of shape ``(rows, ...)``; a scalar array counts as one row.
        out: an array of the same element type that receives the blocks; with room for more, the
            rest stays as it is, unless a member dies within the call: then it is undefined.

    Raises:
        InvalidArgumentError: the blocks have no room in ``out``.
        MismatchError: the rows of the blocks differ in shape, on all members.
    """
    on = _core if context is None else context
    rows = Rows(block, "allgather", "block")
    if out is None:
        return rows.gathered(*on._allgather(block, rows.shape))
    count, counts, contributors = on._allgather_into(block, out, rows.shape)
    return rows.gathered(beginning(out, count), counts, contributors)


def reduce_scatter(
    tensor: Any,
    op: ReduceOp = ReduceOp.SUM,
    out: Any = None,
    *,
    context: Collectives | None = None,
) -> Scattered:
    """Combines ``tensor`` of all members as an allreduce does; each member gets one part.

    The parts are of nearly equal sizes. Which part it is depends on rank and size in the view that
    completed the call.

    Args:
        tensor: a contiguous array of any shape, the same on all members.
        out: an array of the same element type with room for the largest part.

    Raises:
        InvalidArgumentError: the part has no room in ``out``, or ``op`` is no ReduceOp.
    """
    on = _core if context is None else context
    if out is None:
        values, offset, contributors = on._reduce_scatter(tensor, op)
        return Scattered(beside(tensor, values), offset, contributors)
    count, offset, contributors = on._reduce_scatter_into(tensor, out, op)
    return Scattered(beginning(out, count), offset, contributors)


def alltoall(
    array: Any,
    counts: Iterable[int] | None = None,
    out: Any = None,
    *,
    to: Contributors | None = None,
    context: Collectives | None = None,
) -> Gathered:
    """Gives each member a block of rows, and gets one from each, in rank order.

    If a member dies, the call returns on the survivors: the blocks that they gave each other
    without those of the dead or, if all survivors had those already, with them. ``contributors``
    and ``counts`` of the result say which.

    Args:
        array: a contiguous array of shape ``(rows, ...)``, whose rows are the blocks, one after
            another.
        counts: the rows of each block; all members give counts, or none does. Without, all blocks
            have the same size, the same on all members.
        out: an array of the same element type that receives the blocks.
        to: the worker that each block is for, such as ``elastic.members()``. Without, the members
            as this program saw them when it last asked for rank, size, generation or members.

    Raises:
        MismatchError: on all members: the blocks of one do not fit its array or the number of
            workers, rows differ in shape, or a member has no block because it has joined since.
        InvalidArgumentError: the blocks have no room in ``out``.
    """
    on = _core if context is None else context
    rows = Rows(array, "alltoall", "array")
    elements = rows.elements(counts)
    if out is None:
        return rows.gathered(*on._alltoall(array, elements, to, rows.shape))
    count, received, contributors = on._alltoall_into(array, out, elements, to, rows.shape)
    return rows.gathered(beginning(out, count), received, contributors)


def gather(
    block: Any, root: int | Root, out: Any = None, *, context: Collectives | None = None
) -> Gathered:
    """Gives the root the blocks of all members, in rank order; others get no rows and no counts.

    Args:
        block: as for ``allgather``.
        root: a rank of the present view, or ``Root.worker(id)``.
        out: on the root, an array of the same element type that receives the blocks.

    Raises:
        RootLostError: on all members: the root died before it had all blocks, or is no member.
        MismatchError: on all members: there is no such rank, or rows differ in shape.
        InvalidArgumentError: the blocks have no room in ``out``; on the root alone.
    """
    on = _core if context is None else context
    rows = Rows(block, "gather", "block")
    if out is None:
        return rows.gathered(*on._gather(block, root, rows.shape))
    count, counts, contributors = on._gather_into(block, out, root, rows.shape)
    return rows.gathered(beginning(out, count), counts, contributors)


def scatter(
    array: Any,
    root: int | Root,
    counts: Iterable[int] | None = None,
    out: Any = None,
    *,
    to: Contributors | None = None,
    context: Collectives | None = None,
) -> Scattered:
    """Gives each member a block of the root's rows.

    Args:
        array: on the root, as for ``alltoall``. On others only its element type and the shape of
            its rows count: ``numpy.empty((0, 3))``, say.
        root: a rank of the present view, or ``Root.worker(id)``.
        counts: on the root, the rows of each block; without, all have the same size.
        out: an array of the same element type that receives this member's block.
        to: on the root, as for ``alltoall``.

    Raises:
        RootLostError: on all members: the root died before all survivors had their blocks, or is no
            member.
        MismatchError: on all members: there is no such rank, or the blocks do not fit.
        InvalidArgumentError: on this member: its block has no room in ``out``, or is of no whole
            rows.
    """
    on = _core if context is None else context
    rows = Rows(array, "scatter", "array")
    elements = rows.elements(counts)
    if out is None:
        return rows.scattered(*on._scatter(array, root, elements, to))
    count, offset, contributors = on._scatter_into(array, out, root, elements, to)
    return rows.scattered(beginning(out, count), offset, contributors)
