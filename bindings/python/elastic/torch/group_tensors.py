"""What a process group asks of the tensors that it is given."""

from __future__ import annotations

from collections.abc import Sequence

import torch

import elastic


def in_place(tensors: Sequence[torch.Tensor], call: str) -> list[torch.Tensor]:
    """The tensors of a call that reads or writes their memory as it lies."""
    for tensor in tensors:
        if not tensor.is_contiguous():
            raise elastic.InvalidArgumentError(
                f"{call}: the tensor of shape {tuple(tensor.shape)} is not contiguous; give "
                "tensor.contiguous()"
            )
    return list(tensors)
