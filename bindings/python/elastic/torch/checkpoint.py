"""The State in a file of PyTorch's own format, which needs no elastic to be read."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
import torch

from elastic.torch.distributed_data_parallel import DistributedDataParallel


def contents_of(entries: dict[str, Any]) -> dict[str, Any]:
    """The entries that PyTorch can hold, by their names."""
    contents: dict[str, Any] = {}
    for name, entry in entries.items():
        if isinstance(entry, DistributedDataParallel):
            entry = entry.module
        if isinstance(entry, torch.Tensor):
            contents[name] = entry.detach()
        elif isinstance(entry, np.ndarray):
            contents[name] = torch.from_numpy(entry)
        elif hasattr(entry, "state_dict"):
            contents[name] = entry.state_dict()
    return contents


def plain(value: Any) -> Any:
    """A copy with Python's numbers in the place of NumPy's, which ``torch.load`` asks leave for."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def write(contents: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Replaces the file at once: after a crash the path leads to the old one or the new one."""
    final = pathlib.Path(path)
    new = final.with_name(f"{final.name}.{os.getpid()}.new")
    try:
        with open(new, "wb") as file:
            torch.save(contents, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, final)
    finally:
        new.unlink(missing_ok=True)
