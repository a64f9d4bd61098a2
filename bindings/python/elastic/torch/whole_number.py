"""Arguments that are whole numbers."""

from __future__ import annotations

import operator
from typing import Any

import elastic


def whole_number(call: str, name: str, value: Any, least: int = 0, bits: int = 63) -> int:
    """Returns ``value`` of the argument ``name`` as an int.

    Raises:
        InvalidArgumentError: it is none, or not within ``least`` and 2 to the power of ``bits``.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not least <= number < 2**bits:
        raise elastic.InvalidArgumentError(
            f"{call}: {name} is {value!r}; it must be a whole number, {least} or more and below "
            f"2**{bits}"
        )
    return number
