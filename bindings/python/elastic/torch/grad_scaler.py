"""Scaled losses, for gradients of float16: steps that overflow are skipped on all members alike."""

from __future__ import annotations

from typing import Any

import torch

from elastic.torch.optimizer import Distributed

#: From 2.3 on it is for all devices, before that for CUDA devices.
_Base: Any = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)


class GradScaler(_Base):
    """PyTorch's GradScaler, which looks at gradients when they are averaged.

        scaler = elastic.torch.GradScaler("cuda")
        state = elastic.torch.State(model=model, optimizer=optimizer, scaler=scaler)
        ...
        with torch.autocast("cuda", dtype=torch.float16):
            loss = ...
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    An overflow on one member is in the average on all of them. So all skip the step, and all choose
    the same next scale. To clip gradients, call ``scaler.unscale_(optimizer)`` and then clip.

    PyTorch's own class divides gradients by the scale before the DistributedOptimizer has averaged
    them, and wants a loss before the first step, which a worker without a batch does not have.

    Args:
        device: "cuda" or "cpu". PyTorch before 2.3 scales on CUDA devices only; on a CPU the class
            then does nothing, with a warning of PyTorch.
        options: init_scale, growth_factor, backoff_factor, growth_interval and enabled, the same on
            all members.
    """

    def __init__(self, device: str = "cuda", **options: Any) -> None:
        if _Base is torch.cuda.amp.GradScaler:
            super().__init__(**options)
        else:
            super().__init__(device, **options)

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Averages the gradients of a DistributedOptimizer, if that is not done, and divides them
        by the scale."""
        if not self.is_enabled():
            return
        self._prepare(optimizer)
        super().unscale_(optimizer)

    def step(self, optimizer: torch.optim.Optimizer, *arguments: Any, **named: Any) -> Any:
        """Makes the optimizer's step, unless an average has NaN or Inf.

        Returns what ``optimizer.step`` returned, or None.
        """
        if not self.is_enabled():
            return super().step(optimizer, *arguments, **named)
        self._prepare(optimizer)
        if not isinstance(optimizer, Distributed):
            return super().step(optimizer, *arguments, **named)
        try:
            with optimizer.skip_synchronize():
                return super().step(optimizer, *arguments, **named)
        finally:
            optimizer._elastic.averaged = False  # also where the step was skipped

    def _prepare(self, optimizer: torch.optim.Optimizer) -> None:
        if isinstance(optimizer, Distributed) and not optimizer._elastic.averaged:
            optimizer.synchronize()
        # The scale comes into being with the first loss, which this worker may not have had.
        self.scale(torch.zeros((), device=optimizer.param_groups[0]["params"][0].device))
