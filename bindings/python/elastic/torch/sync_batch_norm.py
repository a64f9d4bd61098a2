"""Batch normalization over the batches of all members."""

from __future__ import annotations

from typing import Any

import torch

import elastic


class _Total(torch.autograd.Function):
    """A sum over all members. Each member's loss depends on each addend, so its gradient is the sum
    of the members' gradients."""

    @staticmethod
    def forward(ctx: Any, addends: torch.Tensor) -> torch.Tensor:
        total = addends.detach().clone(memory_format=torch.contiguous_format)
        elastic.allreduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        total = gradient.detach().clone(memory_format=torch.contiguous_format)
        elastic.allreduce(total)
        return total


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """``torch.nn.BatchNorm1d`` to ``3d`` with mean and variance over the batches of all members.

    Batches may be of different sizes. A worker without a batch calls the module with an empty one,
    of shape ``(0, channels, ...)``: all members take part, with two small allreduces in each forward
    and backward pass. If a worker dies in between, statistics are those of the members left.

    ``SyncBatchNorm.convert_sync_batchnorm(module)`` puts it in the place of all batch normalization.

    Raises:
        InvalidArgumentError: the input is not of shape ``(samples, channels, ...)``; or, in training,
            the batches of all members have one value per channel together.
        NotInitializedError: before ``elastic.init``, in training.
    """

    def _check_input_dim(self, given: torch.Tensor) -> None:
        if given.dim() < 2 or given.shape[1] != self.num_features:
            raise elastic.InvalidArgumentError(
                f"SyncBatchNorm: the input has the shape {tuple(given.shape)}; it must be "
                f"(samples, {self.num_features}, ...)"
            )

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(given)
        if not self.training and self.running_mean is not None:
            return super().forward(given)
        values = given.float() if given.dtype in (torch.float16, torch.bfloat16) else given
        axes = [axis for axis in range(values.dim()) if axis != 1]
        shape = [1, -1] + [1] * (values.dim() - 2)
        mean, count = self._mean(values.sum(axes), values)
        centred = values - mean.view(shape)
        variance, count = self._mean(centred.square().sum(axes), values)
        if self.training:
            if count <= 1:
                raise elastic.InvalidArgumentError(
                    "SyncBatchNorm: the batches of all members have one value per channel together; "
                    "there is no variance of one"
                )
            self._follow(mean.detach(), variance.detach() * (count / (count - 1)))
        result = centred * torch.rsqrt(variance + self.eps).view(shape)
        if self.affine:
            result = result * self.weight.view(shape) + self.bias.view(shape)
        return result.to(given.dtype)

    def _mean(self, sums: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, float]:
        """The mean of all members' values, of which ``sums`` has this member's for each channel, and
        their number."""
        count = sums.new_tensor([values.numel() // self.num_features])
        total = _Total.apply(torch.cat([sums, count]))
        number = total[-1].detach()
        return total[:-1] / number.clamp(min=1), float(number)

    @torch.no_grad()
    def _follow(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        """Updates the running statistics, as PyTorch's own batch normalization does."""
        if not self.track_running_stats or self.running_mean is None:
            return
        self.num_batches_tracked.add_(1)
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)

    @classmethod
    def convert_sync_batchnorm(cls, module: torch.nn.Module) -> torch.nn.Module:
        """Replaces batch normalization in ``module`` and below. Parameters and buffers stay the same
        objects. Returns the module, or what replaces it."""
        if not isinstance(module, torch.nn.Module):
            raise elastic.InvalidArgumentError(
                "SyncBatchNorm.convert_sync_batchnorm: give a torch.nn.Module; this is a "
                f"{type(module).__name__}"
            )
        result = module
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and not isinstance(module, cls):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
            )
            result.weight, result.bias = module.weight, module.bias
            result.running_mean, result.running_var = module.running_mean, module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child))
        return result
