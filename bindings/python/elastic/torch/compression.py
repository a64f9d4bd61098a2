"""Gradients in fewer bytes: the element type in which they travel."""

from __future__ import annotations

import enum
from typing import Protocol, runtime_checkable

import torch

import elastic


@runtime_checkable
class Compressor(Protocol):
    """What a DistributedOptimizer takes as ``compression``: one of Compression, or an object of the
    program's own."""

    def compress(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns what travels: ``tensor`` itself, or another that is summed in its place."""

    def decompress(self, travelled: torch.Tensor, tensor: torch.Tensor) -> None:
        """Writes what has travelled back into ``tensor``."""


class Compression(enum.Enum):
    """How a DistributedOptimizer sends gradients."""

    #: As they are.
    NONE = None
    #: As float16: half the bytes of float32, values up to 65504.
    FP16 = torch.float16
    #: As bfloat16: half the bytes, the range of float32, 8 bits of precision.
    BF16 = torch.bfloat16

    def compress(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns what travels: ``tensor`` itself, or a copy of another type."""
        if self is Compression.NONE or not tensor.dtype.is_floating_point:
            return tensor
        if tensor.dtype == self.value:
            return tensor
        return tensor.to(self.value)

    @staticmethod
    def of(value: Compressor | str) -> Compressor:
        """Finds a compression by its name, in small letters or not."""
        if isinstance(value, Compressor) and not isinstance(value, type):
            return value
        name = value.upper() if isinstance(value, str) else ""
        if name in Compression.__members__:
            return Compression[name]
        raise elastic.InvalidArgumentError(
            f"DistributedOptimizer: compression is {value!r}; it is one of Compression.NONE, "
            "Compression.FP16 and Compression.BF16, or an object with compress and decompress"
        )

    @staticmethod
    def decompress(travelled: torch.Tensor, tensor: torch.Tensor) -> None:
        """Writes what has travelled back into ``tensor``."""
        if travelled is not tensor:
            tensor.copy_(travelled)
