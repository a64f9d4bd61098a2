"""elastic.torch.SyncBatchNorm, in order with the other collectives."""

from __future__ import annotations

from typing import Any

import torch

import elastic.torch
from horovod.common.exceptions import as_horovod_errors
from horovod.torch.handles import in_order


class _InOrder(torch.autograd.Function):
    """Lets what was submitted before finish, before the backward pass sums over the members."""

    @staticmethod
    def forward(ctx: Any, given: torch.Tensor) -> torch.Tensor:
        return given.view_as(given)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        in_order.drain()
        return gradient


class SyncBatchNorm(elastic.torch.SyncBatchNorm):
    """Batch normalization with mean and variance over the batches of all members, on CPUs, too."""

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        in_order.drain()
        with as_horovod_errors():
            result = super().forward(given)
        return _InOrder.apply(result) if result.requires_grad else result
