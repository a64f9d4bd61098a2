"""Blocks as Python sees them: rows along the first axis of an array. The library counts elements."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterable
from typing import Any

from elastic._core import Contributors
from elastic.errors import InvalidArgumentError

#: A count that fits no tensor: the call then ends in an error on all members alike.
_TOO_MANY = 2**62


@dataclasses.dataclass(frozen=True)
class Gathered:
    """The result of an allgather, an alltoall or, on the root, a gather."""

    #: The blocks of all contributors, one after another in rank order along the first axis. An
    #: array or tensor of the same kind as the block, on its device; with ``out``, a view of its
    #: beginning.
    values: Any
    #: The rows of each contributor: the length of its block along the first axis.
    counts: list[int]
    contributors: Contributors


@dataclasses.dataclass(frozen=True)
class Scattered:
    """The result of a reduce_scatter, this worker's part of the reduced tensor, or of a scatter, this
    worker's block of the root's."""

    #: The elements of the part, in one dimension, or the rows of the block; with ``out``, a view of
    #: its beginning.
    values: Any
    #: The place of the first value in what all contributors get, flattened, in elements.
    offset: int
    contributors: Contributors


class Rows:
    """The rows of an array that a program gives to a call."""

    def __init__(self, array: Any, call: str, what: str) -> None:
        self._array = array
        self._call = call
        #: The shape of a row.
        self.shape = _shape_of(array, call, what)[1:]
        self._elements = math.prod(self.shape)

    def elements(self, counts: Iterable[Any] | None) -> list[int] | None:
        """The elements of blocks with so many rows. Counts that fit no array stay such, so that all
        members learn of them."""
        if counts is None:
            return None
        rows = [operator.index(count) for count in counts]
        return [each * self._elements if each >= 0 else _TOO_MANY for each in rows] or [_TOO_MANY]

    def gathered(self, values: Any, counts: list[int], contributors: Contributors) -> Gathered:
        """``values`` as rows; ``counts`` are elements."""
        values = beside(self._array, values)
        if self._elements == 0:
            return Gathered(values.reshape((0, *self.shape)), [0 for _ in counts], contributors)
        rows = [self._rows_in(count) for count in counts]
        return Gathered(values.reshape((sum(rows), *self.shape)), rows, contributors)

    def scattered(self, values: Any, offset: int, contributors: Contributors) -> Scattered:
        """``values`` as rows."""
        values = beside(self._array, values)
        count = math.prod(values.shape)
        rows = self._rows_in(count) if self._elements > 0 else 0
        return Scattered(values.reshape((rows, *self.shape)), offset, contributors)

    def _rows_in(self, count: int) -> int:
        rows, rest = divmod(count, self._elements)
        if rest:
            raise InvalidArgumentError(
                f"{self._call}: a block has {count} elements, which are no whole rows of shape "
                f"{self.shape}: give rows that the members divide, or counts; the call is done, and "
                "its result is lost here"
            )
        return rows


def beside(tensor: Any, values: Any) -> Any:
    """``values``, which may be in host memory, on the device of ``tensor``."""
    return values.to(tensor.device) if getattr(tensor, "is_cuda", False) else values


def beginning(out: Any, count: int) -> Any:
    """The first elements of an array that has received a result."""
    return out.reshape(-1)[:count]


def _shape_of(array: Any, call: str, what: str) -> tuple[int, ...]:
    if hasattr(array, "shape"):
        return tuple(array.shape)
    try:
        return tuple(memoryview(array).shape or ())
    except TypeError:
        raise TypeError(
            f"{call}: the {what} is a {type(array).__module__}.{type(array).__qualname__}; give an "
            "array of NumPy, a tensor of PyTorch, or an object with the buffer protocol"
        ) from None
