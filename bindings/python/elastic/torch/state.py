"""A State that takes PyTorch's modules and optimizers."""

from __future__ import annotations

from typing import Any

import torch

import elastic
from elastic import canonical


class _Buffers:
    """A module's buffers, such as the statistics of batch normalization. Modules may put others in
    their place, so they are asked for each time."""

    def __init__(self, name: str, module: torch.nn.Module) -> None:
        self._name = name
        self._module = module

    def _kept(self) -> dict[str, torch.Tensor]:
        state = self._module.state_dict()
        return {name: buffer for name, buffer in self._module.named_buffers() if name in state}

    def save(self) -> bytes:
        return canonical.dumps(self._kept(), self._name)

    def load(self, saved: bytes) -> None:
        loaded = canonical.loads(saved)
        kept = self._kept()
        if loaded.keys() != kept.keys():
            raise elastic.InvalidArgumentError(
                f"{self._name}: this module has the buffers {sorted(kept)}, and what it is to load "
                f"has {sorted(loaded)}"
            )
        with torch.no_grad():
            for name, buffer in kept.items():
                buffer.copy_(loaded[name])


class State(elastic.State):
    """An ``elastic.State`` that takes modules, too.

    Optimizers and schedulers go in by their ``state_dict``. One that makes its tensors with its first
    step needs none before ``run``: a joiner makes them when it loads.

    Parameters of a module in host memory are written in place. Do not move the module afterwards
    (``.to()``, ``.half()``). Everything else is copied when a worker joins.
    """

    def add(self, name: str, entry: Any) -> None:
        if isinstance(entry, torch.nn.Module):
            self._add_module(name, entry)
        elif isinstance(entry, torch.Tensor) and entry.requires_grad:
            super().add(name, entry.detach())
        else:
            super().add(name, entry)

    def _add_module(self, name: str, module: torch.nn.Module) -> None:
        for parameter_name, parameter in module.named_parameters():
            self._core.add_tensor(f"{name}.{parameter_name}", parameter.detach())
        if next(module.buffers(), None) is not None:
            buffers = _Buffers(f"{name}, buffers", module)
            self._core.add_object(f"{name}, buffers", buffers.save, buffers.load)
