"""Gradients in fewer bytes: the element type in which they travel."""

from __future__ import annotations

import enum

import torch

import elastic


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
    def of(value: Compression | str) -> Compression:
        """Finds a compression by its name, in small letters or not."""
        if isinstance(value, Compression):
            return value
        name = value.upper() if isinstance(value, str) else ""
        if name in Compression.__members__:
            return Compression[name]
        raise elastic.InvalidArgumentError(
            f"DistributedOptimizer: compression is {value!r}; it is one of Compression.NONE, "
            "Compression.FP16 and Compression.BF16"
        )

    @staticmethod
    def decompress(travelled: torch.Tensor, tensor: torch.Tensor) -> None:
        """Writes what has travelled back into ``tensor``."""
        if travelled is not tensor:
            tensor.copy_(travelled)
