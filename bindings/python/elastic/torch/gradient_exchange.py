"""Gradients on their way: the asynchronous allreduces of one step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import torch

import elastic
from elastic.torch.compression import Compressor
from elastic.torch.gradient_hooks import before_gradient, on_gradient
from elastic.torch.sparse_rows import packed, sparse_tensor, unpacked
from elastic.torch.start_weights import StartWeights

Parameter: TypeAlias = torch.nn.Parameter


class Group:
    """Parameters whose gradients are allreduced as one unit, under one name."""

    def __init__(self, name: str, named: Sequence[tuple[str, Parameter]]) -> None:
        self.name = name
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        self.missing = 0  # gradients of this step that are yet to come
        self.travelling: list[torch.Tensor] = []
        self.zeros: set[Parameter] = set()  # whose gradients this worker did not compute
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
        compression: Compressor,
        backward_passes_per_step: int,
        predivide: float,
        before: Callable[[], bool] = lambda: True,
        later: Iterable[tuple[str, Parameter]] = (),
    ) -> None:
        """``before`` is asked for each gradient that is ready whether it may travel. Parameters of
        ``later`` do not require a gradient yet."""
        self._groups: list[Group] = []
        self._later = list(later)
        self._op = op
        self._compression = compression
        self._passes = backward_passes_per_step
        self._predivide = predivide
        self._before = before
        #: What has the collectives: the extension module, for all members of the job, or a Group;
        #: None on a worker that takes no part.
        self._on: Any = elastic._core
        self._left: dict[Parameter, int] = {}
        #: Parameters whose gradients are sparse on some member.
        self._sparse: set[Parameter] = set()
        self._hooks: list[Any] = []
        #: None where members may begin with different weights.
        self.start_weights: StartWeights | None = None
        if groups:
            of_all = [parameter for group in groups for parameter in group.parameters]
            self.start_weights = StartWeights(groups[0].name, of_all)
        self.skips = False
        #: Whether `synchronize` was called after the latest gradient came.
        self.averaged = False
        #: Whether the latest averages may be used, as the option non_finite says.
        self.finite = True
        self.contributors: list[elastic.Contributors] = []
        for group in groups:
            self._add(group)

    def _add(self, group: Group) -> None:
        self._groups.append(group)
        self._begin_step(group)
        for parameter in group.parameters:
            self._hooks.append(before_gradient(parameter, self._refuse_second))
            self._hooks.append(on_gradient(parameter, self._hook(group)))

    def add_later(self, name: str, parameter: Parameter) -> None:
        """Adds a parameter that travels from the first step on in which it requires a gradient."""
        self._later.append((name, parameter))

    def limit_to(self, group: elastic.Group | None) -> None:
        """Averages over the members of a group. None: this worker takes no part, and its gradients
        stay its own. Such gradients are not looked at for NaN and Inf."""
        self._on = group
        if group is None:
            self._groups, self._before = [], lambda: False

    def take_in(self) -> None:
        """Adds the parameters that have come to require a gradient, each as a unit of its own."""
        if self._on is None or not any(parameter.requires_grad for _, parameter in self._later):
            return
        for name, parameter in self._later:
            if parameter.requires_grad:
                self._add(Group(name, [(name, parameter)]))
        self._later = [pair for pair in self._later if not pair[1].requires_grad]

    def begin_step(self) -> None:
        """Forgets the gradients that came so far."""
        for group in self._groups:
            self._begin_step(group)

    def _begin_step(self, group: Group) -> None:
        group.missing = len(group.parameters)
        group.work = None
        group.check = None
        group.travelling = []
        group.zeros = set()
        for parameter in group.parameters:
            self._left[parameter] = self._passes

    def _refuse_second(self, parameter: Parameter) -> None:
        """A gradient that has come is on its way, or will be when the rest of its group has come."""
        if self._left[parameter] == 0 and self._before():
            raise elastic.InvalidArgumentError(
                "a gradient was computed again before optimizer.step(): make a step after "
                f"{self._passes} backward pass(es), or say backward_passes_per_step=N"
            )

    def _hook(self, group: Group) -> Callable[[Parameter], None]:
        def arrived(parameter: Parameter) -> None:
            if not self._before():
                return
            self.averaged = False
            self._left[parameter] -= 1
            if self._left[parameter] == 0:
                group.missing -= 1
                if group.missing == 0:
                    self._start(group)

        return arrived

    def _start(self, group: Group) -> None:
        """Starts the allreduce of a group, all of whose gradients are there."""
        group.travelling = []
        for parameter in group.parameters:
            gradient = parameter.grad
            assert gradient is not None
            if gradient.is_sparse:
                self._sparse.add(parameter)
                group.travelling.append(in_place_of_sparse(parameter))
                continue
            if not gradient.is_contiguous():
                gradient = parameter.grad = gradient.contiguous()
            if self._predivide != 1:
                gradient.div_(self._predivide)
            group.travelling.append(self._compression.compress(gradient.detach()))
        self._submit(group)

    def _submit(self, group: Group) -> None:
        travelling = group.travelling
        looked_at = {
            name: tensor
            for name, parameter, tensor in zip(group.names, group.parameters, travelling)
            if tensor.is_cpu and parameter not in self._sparse and self._on is elastic._core
        }
        try:
            if looked_at:
                group.check = elastic.FiniteCheck(looked_at)
                group.check.before_sum()
            self._send(group)
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

    def _send(self, group: Group) -> None:
        if len(group.travelling) == 1:
            group.work = self._on.allreduce_async(group.name, group.travelling[0], self._op)
        else:
            group.work = self._on.grouped_allreduce_async(group.name, group.travelling, self._op)

    def set_passes(self, passes: int) -> None:
        """Gradients of so many backward passes are added up, from the next step on."""
        self._passes = passes
        self.begin_step()

    def under_way(self) -> bool:
        return any(group.work is not None for group in self._groups)

    def forget(self) -> None:
        """Waits for the gradients on their way, and makes no use of any that came."""
        for group in self._groups:
            if group.work is not None:
                with contextlib.suppress(elastic.Error):
                    group.work.wait()
        self.begin_step()

    def synchronize(self) -> None:
        """Waits for the averages; zeros stand for gradients that did not come."""
        self.take_in()
        try:
            for group in self._groups:
                if group.missing > 0 and any(self._left[p] > 0 for p in group.parameters):
                    self._complete(group)
            contributors = self._finish_all()
            if self.start_weights is not None:
                self.start_weights.compare()
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
                parameter.grad = self._zeros(parameter)
                group.zeros.add(parameter)
        group.missing = 0
        self._start(group)

    def _zeros(self, parameter: Parameter) -> torch.Tensor:
        if parameter in self._sparse:
            rows = parameter.detach().new_empty((0, *parameter.shape[1:]))
            places = torch.empty((1, 0), dtype=torch.int64, device=rows.device)
            return sparse_tensor(places, rows, parameter.shape)
        return torch.zeros_like(parameter, memory_format=torch.contiguous_format)

    def _wait(self, group: Group) -> elastic.Contributors:
        """Waits for a group's allreduce. Members that gave zeros for a gradient which is sparse on
        others did not know that, as joiners do not: the allreduce ends in a mismatch on all of
        them, they tell each other which gradients are sparse, and begin again."""
        assert group.work is not None
        try:
            return group.work.wait()
        except elastic.MismatchError:
            sparse = torch.tensor([p in self._sparse for p in group.parameters], dtype=torch.uint8)
            self._on.allreduce_async(f"{group.name}, sparse", sparse, elastic.MAX).wait()
            if not sparse.any():
                raise
        for at, parameter in enumerate(group.parameters):
            if sparse[at] and parameter in group.zeros and parameter not in self._sparse:
                self._sparse.add(parameter)
                parameter.grad = self._zeros(parameter)
                group.travelling[at] = in_place_of_sparse(parameter)
        self._submit(group)
        return group.work.wait()

    def _finish_all(self) -> list[elastic.Contributors]:
        """Waits for the operations of all groups, and writes the results into the gradients."""
        contributors = []
        for group in self._groups:
            contributors += self._finish(group)
        return contributors

    def _finish(self, group: Group) -> list[elastic.Contributors]:
        result = [] if group.work is None else [self._wait(group)]
        for at, (parameter, travelled) in enumerate(zip(group.parameters, group.travelling)):
            gradient = parameter.grad
            if gradient is None:  # set to None while it travelled
                gradient = parameter.grad = self._zeros(parameter)
            if gradient.is_sparse:
                parameter.grad, contributors = self._sum_sparse(
                    parameter, gradient, f"{group.name}, rows of {at}"
                )
                result.append(contributors)
                continue
            self._take_result(gradient, travelled)
        return result

    def _take_result(self, gradient: torch.Tensor, travelled: torch.Tensor) -> None:
        self._compression.decompress(travelled, gradient.detach())
        if self._predivide != 1:
            gradient.detach().mul_(self._predivide)

    def _are_finite(self) -> bool:
        """All operations are complete here: under "error" a check makes an exchange of its own."""
        checks = [group.check for group in self._groups if group.check is not None]
        return all([check.after_sum() for check in checks])

    def _sum_sparse(
        self, parameter: Parameter, gradient: torch.Tensor, name: str
    ) -> tuple[torch.Tensor, elastic.Contributors]:
        """The rows of all members, one after another: a sum, once they are coalesced."""
        gradient = self._coalesced(parameter, gradient)
        rows = packed(gradient)
        # With a name, so that it fails and does not wait for a member that has joined.
        in_order = rows.is_cuda  # elastic takes them without a name only
        gathered = elastic.allgather_async(
            rows, name=None if in_order else name, context=self._on
        ).wait()
        total = self._total_of_rows(gathered.values, gradient, len(gathered.contributors))
        return total, gathered.contributors

    def _coalesced(self, parameter: Parameter, gradient: torch.Tensor) -> torch.Tensor:
        gradient = gradient.coalesce()
        if gradient.values().numel() == 0:  # PyTorch's zero_ may have made all dimensions sparse
            gradient = self._zeros(parameter).coalesce()
        return gradient

    def _total_of_rows(
        self, rows: torch.Tensor, gradient: torch.Tensor, workers: int
    ) -> torch.Tensor:
        """The sum or average of the packed rows of so many workers."""
        indices, values = unpacked(rows, gradient)
        if self._op == elastic.AVERAGE:
            values = values / workers
        return sparse_tensor(indices, values, gradient.shape).coalesce()


def in_place_of_sparse(parameter: Parameter) -> torch.Tensor:
    """Travels in an allreduce in the place of a sparse gradient, whose rows are gathered later."""
    return torch.zeros(1, dtype=torch.int64, device=parameter.device)
