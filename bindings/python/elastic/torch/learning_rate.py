"""A learning rate that follows the global batch, as a scheduler of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

import elastic

#: PyTorch 1.x has it under another name.
_Base: Any = getattr(
    torch.optim.lr_scheduler, "LRScheduler", torch.optim.lr_scheduler._LRScheduler
)


class ElasticLR(_Base):
    """Sets an optimizer's rate to that of an ``elastic.LearningRate``, as workers come and go.

        rate = elastic.LearningRate(elastic.Schedule.cosine(0.1, samples=1e6), batch_reference=256)
        schedule = elastic.torch.ElasticLR(optimizer, rate, batch_per_worker=32)
        state = elastic.torch.State(model=model, optimizer=optimizer, schedule=schedule)
        ...
        optimizer.step()
        schedule.step()     # the rate of the coming step

    Groups of parameters keep the proportion of the rates with which the optimizer was made. Adam
    and its kin take the square root of the batch's factor, as ``elastic.AdamW`` does: leave the rule
    at "linear". The policies "rescale" and "reset" change the momentum in the optimizer's state.

    Args:
        optimizer: any optimizer of PyTorch, also a DistributedOptimizer.
        learning_rate: belongs to this scheduler, which goes into the State in its place.
        batch_per_worker: samples of a full batch of one worker.

    Raises:
        InvalidArgumentError: the optimizer's first rate is 0, or batch_per_worker below 1.
        TypeError: another kind of optimizer or learning rate.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        learning_rate: elastic.LearningRate,
        batch_per_worker: int,
    ) -> None:
        # PyTorch's own __init__ would make a step.
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(
                f"ElasticLR: optimizer is a {type(optimizer).__name__}; give one of PyTorch"
            )
        if not isinstance(learning_rate, elastic.LearningRate):
            raise TypeError(
                f"ElasticLR: learning_rate is a {type(learning_rate).__name__}; give an "
                "elastic.LearningRate"
            )
        if batch_per_worker < 1:
            raise elastic.InvalidArgumentError(
                f"ElasticLR: batch_per_worker is {batch_per_worker}; it must be 1 or more"
            )
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_per_worker = batch_per_worker
        self.base_lrs = [
            float(group.setdefault("initial_lr", float(group["lr"])))
            for group in optimizer.param_groups
        ]
        if self.base_lrs[0] <= 0:
            raise elastic.InvalidArgumentError(
                f"ElasticLR: the optimizer was made with lr={self.base_lrs[0]}; it must be above "
                "0, as the rates of other groups are relative to it"
            )
        self.last_epoch = 0  # steps, as PyTorch's schedulers call them
        self._last_lr = [float(group["lr"]) for group in optimizer.param_groups]

    def step(
        self,
        contributors: elastic.Contributors | Sequence[elastic.Contributors] | None = None,
        *,
        batch: float | None = None,
        samples: float | None = None,
    ) -> None:
        """Sets the rate of the next ``optimizer.step()``; with the same arguments on all members.

        Called after that, it sets the rate by the workers of the step before. Between the averages
        and the step (``synchronize`` or ``backward``, see there) it sees a worker's death in the
        same step.

        Args:
            contributors: the workers with batches that count, such as ``model.contributors``; by
                default those of the DistributedOptimizer.
            batch: the global batch, in place of contributors times batch_per_worker.
            samples: those that were really used, by which the schedule advances; ``batch`` by
                default, which is a little more at an epoch's end.

        Raises:
            InvalidArgumentError: changing nothing, unless ``batch`` is positive and ``samples`` at
                least 0; or there are no contributors yet.
        """
        if batch is None:
            batch = self.batch_per_worker * self._workers(contributors)
        rate = self.learning_rate.step(batch, batch if samples is None else samples)
        self.last_epoch += 1
        for group, base in zip(self.optimizer.param_groups, self.base_lrs):
            gamma = math.sqrt(rate.gamma) if "betas" in group else rate.gamma
            value = base / self.base_lrs[0] * rate.base * gamma
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(value)
            else:
                group["lr"] = value
        self._last_lr = [float(group["lr"]) for group in self.optimizer.param_groups]
        if rate.momentum_scale != 1:
            self._scale_momentum(rate.momentum_scale)

    def get_lr(self) -> list[float]:
        """The rates of the groups."""
        return list(self._last_lr)

    def state_dict(self) -> dict[str, Any]:
        """The state, with that of the learning rate as bytes."""
        return {
            "learning_rate": self.learning_rate.save(),
            "last_epoch": self.last_epoch,
            "last_lr": list(self._last_lr),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Reverse of ``state_dict``. The optimizer's rates are in the optimizer's own state."""
        self.learning_rate.load(state_dict["learning_rate"])
        self.last_epoch = state_dict["last_epoch"]
        self._last_lr = list(state_dict["last_lr"])

    def _workers(
        self, contributors: elastic.Contributors | Sequence[elastic.Contributors] | None
    ) -> int:
        if contributors is None:
            contributors = getattr(self.optimizer, "contributors", None) or []
        if isinstance(contributors, elastic.Contributors):
            contributors = [contributors]
        if not contributors:
            # Not elastic.size(): members may know of a death at different times.
            raise elastic.InvalidArgumentError(
                "ElasticLR.step: there are no contributors yet; call it after optimizer.step() or "
                "optimizer.synchronize(), or give those of the step, schedule.step(contributors)"
            )
        # Workers of all operations of a step: none comes within it.
        return min(len(each) for each in contributors)

    @torch.no_grad()
    def _scale_momentum(self, scale: float) -> None:
        """As the C++ optimizers do. PyTorch counts the correction of Adam's momentum together with
        that of its variance, so after a reset it does not begin again."""
        for state in self.optimizer.state.values():
            for key, factor in (("momentum_buffer", scale), ("exp_avg", math.sqrt(scale))):
                momentum = state.get(key)
                if momentum is None:
                    continue
                if factor == 0:
                    momentum.zero_()  # 0 * NaN is no reset
                else:
                    momentum.mul_(factor)
