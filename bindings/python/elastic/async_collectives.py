"""The asynchronous forms of the calls in collectives.py.

Each does what the call of the same name does, with the same errors, which ``wait`` raises. Without a
name calls keep the program order, among themselves and with those that wait; with one they may be
submitted in any order, and their tensors are in host memory. Inputs stay as they are until the
operation is complete. ``context`` is a Context or a Group.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from elastic import _core
from elastic._core import Collectives, Contributors, ReduceOp, Root
from elastic.pending import Pending
from elastic.rows import Gathered, Rows, Scattered, beginning, beside


def allgather_async(
    block: Any, *, name: str | None = None, context: Collectives | None = None
) -> Pending[Gathered]:
    """Starts an ``allgather``, in program order or under a name."""
    on = _core if context is None else context
    rows = Rows(block, "allgather_async", "block")
    work = on._allgather_async(block, rows.shape, name)
    return Pending(work, lambda result: rows.gathered(*result))


def reduce_scatter_async(
    tensor: Any,
    op: ReduceOp = ReduceOp.SUM,
    out: Any = None,
    *,
    name: str | None = None,
    context: Collectives | None = None,
) -> Pending[Scattered]:
    """Starts a ``reduce_scatter``, in program order or under a name."""
    on = _core if context is None else context

    def scattered(result: tuple[Any, int, Contributors]) -> Scattered:
        values, offset, contributors = result
        part = beginning(out, values) if out is not None else beside(tensor, values)
        return Scattered(part, offset, contributors)

    if out is None:
        return Pending(on._reduce_scatter_async(tensor, op, name), scattered)
    return Pending(on._reduce_scatter_into_async(tensor, out, op, name), scattered)


def alltoall_async(
    array: Any,
    counts: Iterable[int] | None = None,
    out: Any = None,
    *,
    to: Contributors | None = None,
    name: str | None = None,
    context: Collectives | None = None,
) -> Pending[Gathered]:
    """Starts an ``alltoall``, in program order or under a name. Without ``to`` the blocks are for the
    members as this program has seen them before this call."""
    on = _core if context is None else context
    rows = Rows(array, "alltoall_async", "array")
    elements = rows.elements(counts)

    def gathered(result: tuple[Any, list[int], Contributors]) -> Gathered:
        values, received, contributors = result
        blocks = beginning(out, values) if out is not None else values
        return rows.gathered(blocks, received, contributors)

    if out is None:
        return Pending(on._alltoall_async(array, elements, to, rows.shape, name), gathered)
    work = on._alltoall_into_async(array, out, elements, to, rows.shape, name)
    return Pending(work, gathered)


def gather_async(
    block: Any, root: int | Root, *, name: str | None = None, context: Collectives | None = None
) -> Pending[Gathered]:
    """Starts a ``gather``, in program order or under a name."""
    on = _core if context is None else context
    rows = Rows(block, "gather_async", "block")
    work = on._gather_async(block, root, rows.shape, name)
    return Pending(work, lambda result: rows.gathered(*result))


def scatter_async(
    array: Any,
    root: int | Root,
    counts: Iterable[int] | None = None,
    *,
    to: Contributors | None = None,
    name: str | None = None,
    context: Collectives | None = None,
) -> Pending[Scattered]:
    """Starts a ``scatter``, in program order or under a name."""
    on = _core if context is None else context
    rows = Rows(array, "scatter_async", "array")
    work = on._scatter_async(array, root, rows.elements(counts), to, name)
    return Pending(work, lambda result: rows.scattered(*result))
