"""A State that takes PyTorch's modules and optimizers."""

from __future__ import annotations

import os
from typing import Any

import torch

import elastic
from elastic import canonical
from elastic.torch import checkpoint
from elastic.torch.loader import ElasticDataLoader


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

    Optimizers, schedulers and GradScalers go in by their ``state_dict``. One that makes its tensors
    with its first step, as Adam does, needs none before ``run``: a joiner makes them when it loads.
    An ElasticDataLoader goes in by its sampler.

    Parameters of a module are written in place. Move it to its device before (``.to()``,
    ``.half()``), and not afterwards; all workers have it on the host, or all on a CUDA device.
    Everything but parameters in host memory is copied when a worker joins.
    """

    def __init__(self, *unnamed: Any, **entries: Any) -> None:
        object.__setattr__(self, "_entries", {})
        super().__init__(*unnamed, **entries)

    def add(self, name: str, entry: Any) -> None:
        """Adds an entry. Before ``run`` only.

        Raises:
            InvalidArgumentError: the name is taken, or a tensor is not contiguous, sparse, or on a
                device that is neither the host nor a CUDA device.
            TypeError: a joiner could not receive an entry of this kind.
        """
        self._add(name, entry)
        self._entries[name] = entry

    def export_to(self, path: str | os.PathLike[str]) -> bool:
        """Writes the State for ``torch.load``, on rank 0; the other members write nothing.

        ``torch.load(path)`` gives a dict by the entries' names: the ``state_dict()`` of modules,
        optimizers and schedulers, and tensors; plain values are under "values", and the number of
        commits under "commits". A DistributedDataParallel counts as its module. What belongs to
        elastic alone, such as a Sampler, is in the file of ``save_to`` only. The file is replaced
        at once and as a whole.

        Returns whether this worker wrote.

        Raises:
            NotInitializedError: before ``elastic.init``.
            OSError: the file cannot be written. An old one is as it was.
        """
        if elastic.rank() != 0:
            return False
        contents = checkpoint.contents_of(self._entries)
        contents["values"] = checkpoint.plain(self._values.current)
        contents["commits"] = self.commits
        checkpoint.write(contents, path)
        return True

    def _add(self, name: str, entry: Any) -> None:
        if isinstance(entry, torch.nn.Module):
            self._add_module(name, entry)
        elif isinstance(entry, torch.Tensor) and entry.requires_grad:
            super().add(name, entry.detach())
        elif isinstance(entry, ElasticDataLoader):
            super().add(name, entry.sampler)
        else:
            super().add(name, entry)

    def _add_module(self, name: str, module: torch.nn.Module) -> None:
        for parameter_name, parameter in module.named_parameters():
            if torch.nn.parameter.is_lazy(parameter):
                raise elastic.InvalidArgumentError(
                    f"State.add: {name}.{parameter_name} has no shape yet; call the module with an "
                    "input before it goes into the State"
                )
            self._add_tensor(f"{name}.{parameter_name}", parameter.detach())
        if next(module.buffers(), None) is not None:
            buffers = _Buffers(f"{name}, buffers", module)
            self._core.add_object(f"{name}, buffers", buffers.save, buffers.load)
