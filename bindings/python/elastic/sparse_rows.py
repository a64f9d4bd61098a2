"""The sum of sparse rows, such as the gradient of an embedding."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from elastic import _core
from elastic._core import Collectives, Contributors, ReduceOp
from elastic.errors import InvalidArgumentError
from elastic.pending import Pending
from elastic.rows import Rows


@dataclasses.dataclass(frozen=True)
class SparseRows:
    """The sum of the rows that all members gave."""

    #: The rows that a member gave: int64, ascending, each once. An array or tensor of the same kind
    #: as the indices that this member gave.
    indices: Any
    #: The rows, in their order, of the same kind as the values.
    values: Any
    contributors: Contributors


def sparse_allreduce(
    indices: Any,
    values: Any,
    rows: int,
    op: ReduceOp = ReduceOp.SUM,
    *,
    context: Collectives | None = None,
) -> SparseRows:
    """Sums sparse rows over all members, without the rows that no member gave.

    Members may give different rows, and any number of them. Indices and values have the same
    contributors after a death. If the members give few rows, these are gathered; if they give many,
    the whole array is summed, with zeros for rows that a member does not give. The bits are the same
    on all members.

    Args:
        indices: the rows that this member gives, an array of int64; one may come several times.
        values: a contiguous array in host memory of shape ``(len(indices), ...)``. The number
            of elements of a row and their type are the same on all members.
        rows: the rows of the whole tensor: each index is less. The same on all members.
        op: ReduceOp.SUM, or AVERAGE, which divides by the number of workers that contributed.
        context: the Context or the Group whose members make the call; without, those of the
            default context.

    Raises:
        InvalidArgumentError: an index is no row, which the message names with its rank; on all
            members. Or the values are not as many rows as the indices; on this member.
        MismatchError: another number of elements in a row, element type or number of rows; on all
            members. Shapes with as many elements count as the same.
    """
    on = _core if context is None else context
    given = _Given(indices, values, rows, "sparse_allreduce")
    *sums, contributors = on._sparse_allreduce(*given.arguments, op)
    return given.rows(sums, contributors)


def grouped_sparse_allreduce(
    tensors: Iterable[tuple[Any, Any, int]],
    op: ReduceOp = ReduceOp.SUM,
    *,
    context: Collectives | None = None,
) -> list[SparseRows]:
    """Does ``sparse_allreduce`` of several tensors, such as the embeddings of a model, in one
    operation: all of them are sums over the same contributors.

    Args:
        tensors: indices, values and rows of each tensor, as ``sparse_allreduce`` takes them.
        op: as there.
        context: as there.

    Returns:
        The rows of each tensor, in their order.

    Raises:
        InvalidArgumentError: as ``sparse_allreduce``. The messages name the tensor, counted from 0.
        MismatchError: as ``sparse_allreduce``, and another number of tensors; on all members.
    """
    on = _core if context is None else context
    given = [_given(at, each) for at, each in enumerate(tensors)]
    sums, contributors = on._grouped_sparse_allreduce([each.arguments for each in given], op)
    return [each.rows(its, contributors) for each, its in zip(given, sums)]


def sparse_allreduce_async(
    indices: Any,
    values: Any,
    rows: int,
    op: ReduceOp = ReduceOp.SUM,
    *,
    name: str | None = None,
    context: Collectives | None = None,
) -> Pending[SparseRows]:
    """Starts a ``sparse_allreduce``, in program order or under a name. Under a name the rows are
    always gathered, however many they are, and ``wait`` adds them. The arrays may change as soon as
    this returns."""
    on = _core if context is None else context
    given = _Given(indices, values, rows, "sparse_allreduce_async")
    work = on._sparse_allreduce_async(*given.arguments, op, name)
    return Pending(work, lambda result: given.rows(result[:2], result[2]))


class _Given:
    """The rows that a program gives to a call."""

    def __init__(self, indices: Any, values: Any, rows: int, call: str) -> None:
        self._shape = Rows(values, call, "values").shape
        width = math.prod(self._shape)
        if not 0 <= operator.index(rows) < 2**63:
            raise InvalidArgumentError(f"{call}: a tensor of {rows} rows is none; give 0 or more")
        self.arguments = (indices, values, width, operator.index(rows))

    def rows(self, sums: Sequence[Any], contributors: Contributors) -> SparseRows:
        """Indices and values of the result, as the program sees them."""
        indices, values = sums
        return SparseRows(indices, values.reshape((len(indices), *self._shape)), contributors)


def _given(at: int, tensor: Sequence[Any]) -> _Given:
    """Tensor ``at`` of a grouped_sparse_allreduce."""
    call = "grouped_sparse_allreduce"
    try:
        indices, values, rows = tensor
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"{call}: tensor {at} is not its indices, its values and its number of rows"
        ) from None
    return _Given(indices, values, rows, call)
