"""Objects, and the parameters and optimizers of a model, from one rank to all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cloudpickle
import torch

from horovod.common.process_sets import global_process_set
from horovod.torch.allgather import start
from horovod.torch.broadcast import broadcast_, broadcast_async_, fixed_root
from horovod.torch.handles import in_order, synchronize


def _pickled(value: Any) -> torch.Tensor:
    return torch.frombuffer(bytearray(cloudpickle.dumps(value)), dtype=torch.uint8)


def _unpickled(data: torch.Tensor) -> Any:
    return cloudpickle.loads(data.numpy().tobytes())


def broadcast_object(
    obj: Any,
    root_rank: int = 0,
    name: str | None = None,
    process_set: Any = global_process_set,
) -> Any:
    """Rank ``root_rank``'s object, which is pickled for the others."""
    root = fixed_root(root_rank, process_set)
    data = _pickled(obj) if root.is_here else torch.empty(0, dtype=torch.uint8)
    length = broadcast_(torch.tensor([len(data)]), root, process_set=process_set)
    if not root.is_here:
        data = torch.empty(int(length), dtype=torch.uint8)
    broadcast_(data, root, process_set=process_set)
    return obj if root.is_here else _unpickled(data)


def allgather_object(obj: Any, name: str | None = None) -> list[Any]:
    """The objects of all members, by rank."""
    (blocks,) = synchronize(start([_pickled(obj)], None))
    return [_unpickled(part) for part in torch.split(blocks.values, blocks.counts)]


def broadcast_parameters(params: Any, root_rank: int) -> None:
    """Overwrites parameters by those of rank ``root_rank``.

    Args:
        params: ``model.state_dict()``, or a list of tensors or of pairs of name and tensor.
    """
    if isinstance(params, dict):
        given = [params[name] for name in sorted(params)]
    elif isinstance(params, Iterable) and not isinstance(params, (str, torch.Tensor)):
        given = [entry[1] if isinstance(entry, tuple) else entry for entry in params]
    else:
        raise ValueError(
            "broadcast_parameters: give model.state_dict() or a list of parameters, not a "
            f"{type(params).__name__}"
        )
    root = fixed_root(root_rank)
    handles = [broadcast_async_(entry, root) for entry in given if isinstance(entry, torch.Tensor)]
    in_order.drain()  # if one of them fails, the others must not write into the tensors later
    for handle in handles:
        synchronize(handle)


class _Place:
    """Stands for a tensor in a structure that is pickled."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape, self.dtype = tensor.shape, tensor.dtype


def _mapped(value: Any, change: Any) -> Any:
    """``value``, with each tensor or place in it changed."""
    if isinstance(value, (torch.Tensor, _Place)):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_mapped(item, change) for item in value)
    return value


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, model: Any = None
) -> None:
    """Gives an optimizer the state and the options of that of rank ``root_rank``."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("broadcast_optimizer_state: the state of LBFGS cannot be sent")
    root = fixed_root(root_rank)
    state = optimizer.state_dict() if root.is_here else None
    form = broadcast_object(_mapped(state, _Place) if root.is_here else None, root)
    tensors: list[torch.Tensor] = []

    def tensor_for(place: Any) -> torch.Tensor:
        if isinstance(place, _Place):
            place = torch.empty(place.shape, dtype=place.dtype)
        tensors.append(place.contiguous())
        return tensors[-1]

    received = _mapped(state if root.is_here else form, tensor_for)
    broadcast_parameters(tensors, root)
    if not root.is_here:
        optimizer.load_state_dict(received)
    if not form["state"]:
        _make_gradients(optimizer)


def _make_gradients(optimizer: torch.optim.Optimizer) -> None:
    """Zeros for the gradients that are not there; Horovod's function leaves them, too."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.requires_grad and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
