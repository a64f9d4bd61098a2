"""Sparse tensors as matrices of bytes, whose rows can be gathered."""

from __future__ import annotations

import torch


def packed(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a row of bytes for each element, or dense part, of a coalesced sparse tensor: its place
    and its values. One matrix has both, so that those gathered are of the same contributors."""
    return torch.cat([_bytes_of_rows(tensor.indices().t()), _bytes_of_rows(tensor.values())], dim=1)


def unpacked(rows: torch.Tensor, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the indices and values in ``rows``, which ``packed`` made of tensors such as ``like``."""
    places = like.indices().shape[0]
    width = places * 8
    indices = rows[:, :width].flatten().clone().view(torch.int64).reshape(len(rows), places).t()
    values = rows[:, width:].flatten().clone().view(like.values().dtype)
    return indices, values.reshape(len(rows), *like.values().shape[1:])


def sparse_tensor(indices: torch.Tensor, values: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Returns the sparse tensor of these. They are not checked, which is PyTorch's default; where a
    program does not say so, PyTorch warns."""
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=False)


def _bytes_of_rows(rows: torch.Tensor) -> torch.Tensor:
    """The bytes of each row, in a matrix of as many rows."""
    # A copy of its own: a matrix of one row counts as contiguous whatever its strides.
    copy = rows.clone(memory_format=torch.contiguous_format).flatten()
    width = rows.shape[1:].numel() * rows.element_size()
    return copy.view(torch.uint8).reshape(len(rows), width)
