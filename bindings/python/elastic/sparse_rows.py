"""The sum of sparse rows, such as the gradient of an embedding."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Any

from elastic import _core
from elastic._core import Collectives, Contributors, ReduceOp
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
        values: a contiguous array in host memory of shape ``(len(indices), ...)``. The shape of a
            row and the element type are the same on all members.
        rows: the rows of the whole tensor: each index is less. The same on all members.
        op: ReduceOp.SUM, or AVERAGE, which divides by the number of workers that contributed.
        context: the Context or the Group whose members make the call; without, those of the
            default context.

    Raises:
        InvalidArgumentError: an index is no row, which the message names with its rank; on all
            members. Or the values are not as many rows as the indices; on this member.
        MismatchError: another shape of rows, element type or number of rows; on all members.
    """
    on = _core if context is None else context
    shape = Rows(values, "sparse_allreduce", "values").shape
    width = max(math.prod(shape), 1)
    sums = on._sparse_allreduce(indices, values, width, operator.index(rows), op)
    return SparseRows(sums[0], sums[1].reshape((len(sums[0]), *shape)), sums[2])
