"""The State of a training with PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import torch

from horovod.common import basics
from horovod.common.elastic import ObjectState, _Run
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.functions import (
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from horovod.torch.optimizer import forget_gradients


class TorchState(ObjectState):
    """Models, optimizers, samplers, and objects that can be pickled, each an attribute.

    Args:
        model: a module.
        optimizer: an optimizer.
        kwargs: more of them, ElasticSamplers, or objects.
    """

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any) -> None:
        given = {"model": model, "optimizer": optimizer, **kwargs}
        self._copies: dict[str, Any] = {}
        self._with_dict = [name for name, value in given.items() if _has_dict(value)]
        for name in self._with_dict:
            setattr(self, name, given.pop(name))
        super().__init__(broadcast_object, basics.rank, **given)
        self._keep()

    def on_reset(self) -> None:
        forget_gradients()
        super().on_reset()

    def save(self) -> None:
        self._keep()
        super().save()

    def restore(self) -> None:
        for name in self._with_dict:
            getattr(self, name).load_state_dict(copy.deepcopy(self._copies[name]))
        super().restore()

    def sync(self) -> None:
        """Gives all members the state of the one that has it: rank 0, or the first that is no
        joiner."""
        root = _Run.root()
        for name in self._with_dict:
            _send(getattr(self, name), root)
        super().sync()
        self._keep()

    def _keep(self) -> None:
        for name in self._with_dict:
            self._copies[name] = copy.deepcopy(getattr(self, name).state_dict())


def _has_dict(value: Any) -> bool:
    return isinstance(value, (torch.nn.Module, torch.optim.Optimizer, ElasticSampler))


def _send(value: Any, root: int) -> None:
    if isinstance(value, torch.nn.Module):
        broadcast_parameters(value.state_dict(), root)
    elif isinstance(value, torch.optim.Optimizer):
        broadcast_optimizer_state(value, root)
    else:
        value.load_state_dict(broadcast_object(value.state_dict(), root))
