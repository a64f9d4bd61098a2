"""Gradients on their way: the asynchronous allreduces of one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

import elastic
from elastic.torch.compression import Compression
from elastic.torch.gradient_hooks import on_gradient

Parameter: TypeAlias = torch.nn.Parameter


class Group:
    """Parameters whose gradients are allreduced as one unit, under one name."""

    def __init__(self, name: str, named: Sequence[tuple[str, Parameter]]) -> None:
        self.name = name
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        self.missing = 0  # gradients of this step that are yet to come
        self.travelling: list[torch.Tensor] = []
        self.work: elastic.Work | None = None
        self.check: elastic.FiniteCheck | None = None

    def add(self, name: str, parameter: Parameter) -> None:
        self.names.append(name)
        self.parameters.append(parameter)


class Exchange:
    """The asynchronous allreduces of one optimizer's gradients."""

    def __init__(
        self,
        groups: list[Group],
        op: elastic.ReduceOp,
        compression: Compression,
        backward_passes_per_step: int,
        predivide: float,
        before: Callable[[], bool] = lambda: True,
    ) -> None:
        """``before`` is asked for each gradient that is ready whether it may travel."""
        self._groups = groups
        self._op = op
        self._compression = compression
        self._passes = backward_passes_per_step
        self._predivide = predivide
        self._before = before
        self._left: dict[Parameter, int] = {}
        self._hooks: list[Any] = []
        self.skips = False
        #: Whether `synchronize` was called after the latest gradient came.
        self.averaged = False
        #: Whether the latest averages may be used, as the option non_finite says.
        self.finite = True
        self.contributors: list[elastic.Contributors] = []
        for group in groups:
            for parameter in group.parameters:
                self._hooks.append(on_gradient(parameter, self._hook(group)))
        self.begin_step()

    def begin_step(self) -> None:
        """Forgets the gradients that came so far."""
        for group in self._groups:
            group.missing = len(group.parameters)
            group.work = None
            group.check = None
            group.travelling = []
            for parameter in group.parameters:
                self._left[parameter] = self._passes

    def _hook(self, group: Group) -> Callable[[Parameter], None]:
        def arrived(parameter: Parameter) -> None:
            if not self._before():
                return
            self.averaged = False
            if self._left[parameter] == 0:
                raise elastic.InvalidArgumentError(
                    "a gradient was computed again before optimizer.step(): make a step after "
                    f"{self._passes} backward pass(es), or say backward_passes_per_step=N"
                )
            self._left[parameter] -= 1
            if self._left[parameter] == 0:
                group.missing -= 1
                if group.missing == 0:
                    self._start(group)

        return arrived

    def _start(self, group: Group) -> None:
        """Starts the allreduce of a group, all of whose gradients are there."""
        travelling: list[torch.Tensor] = []
        looked_at: dict[str, torch.Tensor] = {}
        for name, parameter in zip(group.names, group.parameters):
            gradient = parameter.grad
            assert gradient is not None
            if gradient.is_sparse:
                continue  # by allgathers, in `synchronize`
            if not gradient.is_contiguous():
                gradient = parameter.grad = gradient.contiguous()
            if self._predivide != 1:
                gradient.div_(self._predivide)
            travelling.append(self._compression.compress(gradient.detach()))
            if travelling[-1].is_cpu:
                looked_at[name] = travelling[-1]
        group.travelling = travelling
        try:
            if looked_at:
                group.check = elastic.FiniteCheck(looked_at)
                group.check.before_sum()
            if len(travelling) == 1:
                group.work = elastic.allreduce_async(group.name, travelling[0], self._op)
            elif travelling:
                group.work = elastic.grouped_allreduce_async(group.name, travelling, self._op)
        except elastic.InvalidArgumentError as error:
            self.begin_step()
            if "under way" not in str(error):
                raise
            raise elastic.InvalidArgumentError(
                f"{error}. If several optimizers or modules have parameters of this name, give "
                "each its own prefix: named_parameters=[('second.' + name, parameter) for name, "
                "parameter in model.named_parameters()]"
            ) from error
        except elastic.Error:
            self.begin_step()  # the operations are over, such as where this worker was evicted
            raise

    def set_passes(self, passes: int) -> None:
        """Gradients of so many backward passes are added up, from the next step on."""
        self._passes = passes
        self.begin_step()

    def under_way(self) -> bool:
        return any(group.work is not None for group in self._groups)

    def synchronize(self) -> None:
        """Waits for the averages; zeros stand for gradients that did not come."""
        try:
            contributors = []
            for group in self._groups:
                if group.missing > 0 and any(self._left[p] > 0 for p in group.parameters):
                    self._complete(group)
            for group in self._groups:
                contributors += self._finish(group)
            self.contributors = contributors
            self.finite = self._are_finite()
            self.averaged = True
        finally:
            # After an error, such as that this worker was evicted, the operations are over, too.
            self.begin_step()

    def _complete(self, group: Group) -> None:
        """Zeros stand for gradients that this worker did not compute: other members may have."""
        for parameter in group.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
        group.missing = 0
        self._start(group)

    def _finish(self, group: Group) -> list[elastic.Contributors]:
        result = []
        if group.work is not None:
            result.append(group.work.wait())
        travelled = iter(group.travelling)
        for parameter in group.parameters:
            gradient = parameter.grad
            if gradient is None:  # set to None while it travelled
                gradient = parameter.grad = torch.zeros_like(parameter)
            if gradient.is_sparse:
                parameter.grad, contributors = self._sum_sparse(gradient)
                result.append(contributors)
                continue
            Compression.decompress(next(travelled), gradient.detach())
            if self._predivide != 1:
                gradient.detach().mul_(self._predivide)
        return result

    def _are_finite(self) -> bool:
        """All operations are complete here: under "error" a check makes an exchange of its own."""
        checks = [group.check for group in self._groups if group.check is not None]
        return all([check.after_sum() for check in checks])

    def _sum_sparse(self, gradient: torch.Tensor) -> tuple[torch.Tensor, elastic.Contributors]:
        """The rows of all members, one after another: a sum, once they are coalesced. One
        allgather has positions and values, so that both are of the same contributors."""
        gradient = gradient.coalesce()
        indices, values = gradient.indices(), gradient.values()
        rows = values.reshape(values.shape[0], -1)
        packed = torch.cat(
            [
                _bytes_of_rows(indices.t()),
                _bytes_of_rows(rows),
            ],
            dim=1,
        )
        gathered = elastic.allgather(packed)
        width = indices.shape[0] * 8
        all_indices = gathered.values[:, :width].reshape(-1).view(torch.int64)
        all_indices = all_indices.reshape(-1, indices.shape[0]).t()
        all_values = gathered.values[:, width:].reshape(-1).view(values.dtype)
        all_values = all_values.reshape(-1, *values.shape[1:])
        if self._op == elastic.AVERAGE:
            all_values = all_values / len(gathered.contributors)
        total = torch.sparse_coo_tensor(all_indices, all_values, gradient.shape).coalesce()
        return total, gathered.contributors


def _bytes_of_rows(rows: torch.Tensor) -> torch.Tensor:
    """The bytes of a matrix, in a matrix of as many rows."""
    return rows.reshape(-1).view(torch.uint8).reshape(rows.shape[0], -1)
