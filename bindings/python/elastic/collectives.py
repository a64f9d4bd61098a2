"""Collectives whose results have a size of their own: allgather and reduce_scatter."""

from __future__ import annotations

import dataclasses
from typing import Any

from elastic import _core
from elastic._core import Context, Contributors, ReduceOp


@dataclasses.dataclass(frozen=True)
class Gathered:
    """The result of an allgather."""

    #: The blocks of all contributors, one after another in rank order along the first axis. An
    #: array or tensor of the same kind as the block, on its device; with ``out``, a view of its
    #: beginning.
    values: Any
    #: The rows of each contributor: the length of its block along the first axis.
    counts: list[int]
    contributors: Contributors


@dataclasses.dataclass(frozen=True)
class Scattered:
    """The result of a reduce_scatter: this worker's part of the reduced tensor."""

    #: The elements of the part, in one dimension; with ``out``, a view of its beginning.
    values: Any
    #: The place of the first value in the whole flattened tensor, in elements.
    offset: int
    contributors: Contributors


def allgather(block: Any, out: Any = None, *, context: Context | None = None) -> Gathered:
    """Gathers the blocks of all members on all of them, in rank order.

    Blocks may differ in their length along the first axis, and in nothing else.

    Args:
        block: a contiguous array of shape ``(rows, ...)``; a scalar array counts as one row.
        out: an array of the same element type that receives the blocks; with room for more, the
            rest stays as it is.

    Raises:
        InvalidArgumentError: the blocks have no room in ``out``.
        MismatchError: the rows of the blocks differ in shape, on all members.
    """
    on = _core if context is None else context
    row = _shape_of(block)[1:]
    elements_of_row = 1
    for length in row:
        elements_of_row *= length
    if out is None:
        values, counts, contributors = on._allgather(block, row)
        values = _beside(block, values)
    else:
        count, counts, contributors = on._allgather_into(block, out, row)
        values = out.reshape(-1)[:count]
    if elements_of_row == 0:
        return Gathered(values.reshape((0, *row)), [0 for _ in counts], contributors)
    rows = [count // elements_of_row for count in counts]
    return Gathered(values.reshape((sum(rows), *row)), rows, contributors)


def reduce_scatter(
    tensor: Any,
    op: ReduceOp = ReduceOp.SUM,
    out: Any = None,
    *,
    context: Context | None = None,
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
        return Scattered(_beside(tensor, values), offset, contributors)
    count, offset, contributors = on._reduce_scatter_into(tensor, out, op)
    return Scattered(out.reshape(-1)[:count], offset, contributors)


def _beside(tensor: Any, values: Any) -> Any:
    """``values``, which are in host memory, on the device of ``tensor``."""
    return values.to(tensor.device) if getattr(tensor, "is_cuda", False) else values


def _shape_of(block: Any) -> tuple[int, ...]:
    if hasattr(block, "shape"):
        return tuple(block.shape)
    try:
        return tuple(memoryview(block).shape or ())
    except TypeError:
        raise TypeError(
            f"allgather: the block is a {type(block).__module__}.{type(block).__qualname__}; give an "
            "array of NumPy, a tensor of PyTorch, or an object with the buffer protocol"
        ) from None
