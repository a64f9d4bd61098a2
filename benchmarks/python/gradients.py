"""A module with the parameters of ResNet-18, whose backward pass makes gradients and computes
nothing else: the cost of a step is then that of exchanging them."""

from __future__ import annotations

from typing import Any

import torch


def shapes() -> list[tuple[int, ...]]:
    """The shapes of ResNet-18's parameters (He et al. 2016, for 1000 classes), from input to
    output: 62 tensors with 11,689,512 elements."""
    result: list[tuple[int, ...]] = [(64, 3, 7, 7), (64,), (64,)]
    channels = 64
    for width in (64, 128, 256, 512):
        for block in range(2):
            for inputs in (channels, width):
                result += [(width, inputs, 3, 3), (width,), (width,)]
            if block == 0 and channels != width:
                result += [(width, channels, 1, 1), (width,), (width,)]
            channels = width
    return result + [(1000, 512), (1000,)]


class _Layer(torch.autograd.Function):
    """Passes its input on. The gradient of its parameter is the same everywhere."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
        ctx.shape = parameter.shape
        return inputs.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return gradient, torch.full(ctx.shape, 0.01)


class Gradients(torch.nn.Module):
    """``module(inputs).backward()`` makes the gradients of all parameters, the last one first."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(s)) for s in shapes()])

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        for parameter in self.layers:
            inputs = _Layer.apply(inputs, parameter)
        return inputs
