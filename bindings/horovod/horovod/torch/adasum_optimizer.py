"""DistributedOptimizer with op=Adasum: each member makes a step of its own, and the steps are combined."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from elastic.torch.optimizer import _names, _step_first
from horovod.common.absent import refuse
from horovod.torch.allreduce import grouped_allreduce_
from horovod.torch.tensors import Adasum


class _AdasumOfSteps:
    """What differs from the optimizer."""

    _compression: Any
    _process_set: Any
    #: What a learning-rate scheduler has put in the place of the optimizer's own ``step``.
    _elastic_step: Callable[[], Any] | None = None

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes a step by this member's own gradients, and replaces it by the Adasum of all
        members' steps."""
        groups = self.param_groups  # type: ignore[attr-defined]
        parameters = [p for group in groups for p in group["params"] if p.requires_grad]
        starts = [parameter.detach().clone() for parameter in parameters]
        step = self._elastic_step or super().step  # type: ignore[misc]
        result = step() if closure is None else step(closure)  # type: ignore[call-arg]
        steps = [parameter.detach() - start for parameter, start in zip(parameters, starts)]
        if steps and self._process_set.included():
            self._combine(steps)
        with torch.no_grad():
            for parameter, start, combined in zip(parameters, starts, steps):
                parameter.copy_(start + combined)
        return result

    def _combine(self, steps: list[torch.Tensor]) -> None:
        pairs = [self._compression.compress(each) for each in steps]
        # As one unit: all of them have the same contributors.
        travelling = grouped_allreduce_(
            [each.contiguous() for each, _ in pairs], op=Adasum, process_set=self._process_set
        )
        for at, (combined, (_, context)) in enumerate(zip(travelling, pairs)):
            steps[at] = self._compression.decompress(combined, context)

    def synchronize(self) -> None:
        """Does nothing: gradients stay this member's own."""

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        refuse(
            "skip_synchronize of op=hvd.Adasum",
            "steps are combined, not gradients: clip them, and call step()",
        )
        yield

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Does nothing: call ``step`` after so many backward passes."""


def adasum_optimizer(
    optimizer: Any, named: Any, compression: Any, predivide: float, process_set: Any
) -> Any:
    """The optimizer itself, with its class extended.

    Raises:
        ValueError: a name is used twice, or names or options do not fit the optimizer.
    """
    if not callable(getattr(compression, "compress", None)):
        raise ValueError("DistributedOptimizer: compression is hvd.Compression.none or .fp16")
    if predivide != 1.0:
        raise ValueError("DistributedOptimizer: gradient_predivide_factor is for op=hvd.Average")
    _names(optimizer, named)
    kind = type(optimizer)
    optimizer.__class__ = type(kind.__name__, (_AdasumOfSteps, kind), {})
    optimizer._compression = compression
    optimizer._process_set = process_set
    _step_first(optimizer)
    return optimizer
