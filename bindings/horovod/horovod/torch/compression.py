"""Compression of gradients to 16 bits while they travel."""

from __future__ import annotations

from typing import Any

import torch

import elastic.torch


class Compressor:
    """What ``allreduce`` and ``DistributedOptimizer`` take as ``compression``."""

    #: The same for elastic's optimizer.
    elastic = elastic.torch.Compression.NONE

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """What travels, and what ``decompress`` has to know."""
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """The reverse of ``compress``."""
        return tensor


class NoneCompressor(Compressor):
    """Sends tensors as they are."""


class FP16Compressor(Compressor):
    """Sends numbers of floating point as float16."""

    elastic = elastic.torch.Compression.FP16

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if not tensor.dtype.is_floating_point:
            return tensor, tensor.dtype
        return tensor.to(torch.float16), tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor.to(ctx)


class Compression:
    """The compressions by name."""

    none = NoneCompressor
    fp16 = FP16Compressor
