"""An optimizer that averages gradients over all members before each step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import torch

import elastic
from elastic.torch.compression import Compression
from elastic.torch.gradient_hooks import on_gradient

_Parameter: TypeAlias = torch.nn.Parameter


class _Group:
    """Parameters whose gradients are allreduced as one unit, under one name."""

    def __init__(self, name: str, parameters: Sequence[_Parameter]) -> None:
        self.name = name
        self.parameters = list(parameters)
        self.missing = 0  # gradients of this step that are yet to come
        self.travelling: list[torch.Tensor] = []
        self.work: elastic.Work | None = None


class _Distributed:
    """The methods that DistributedOptimizer adds to the class of the optimizer it is given."""

    _elastic: _Exchange

    def synchronize(self) -> None:
        """Waits until all gradients are averaged. Call it before gradients are clipped; then step
        under ``skip_synchronize()``."""
        self._elastic.synchronize()

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Steps in here do not average: ``synchronize`` was called already."""
        self._elastic.skips = True
        try:
            yield
        finally:
            self._elastic.skips = False

    @property
    def contributors(self) -> list[elastic.Contributors]:
        """The Contributors of each operation of the latest ``synchronize``, for Sampler.commit."""
        return self._elastic.contributors

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if closure is not None:  # it makes the gradients, as backward() does
            with torch.enable_grad():
                loss = closure()
        else:
            loss = None
        if not self._elastic.skips:
            self._elastic.synchronize()
        stepped = super().step()  # type: ignore[misc]
        return loss if closure is not None else stepped

    def zero_grad(self, *arguments: Any, **named: Any) -> None:
        if self._elastic.under_way():
            raise elastic.InvalidArgumentError(
                "zero_grad was called while gradients are being averaged: call optimizer.step() or "
                "optimizer.synchronize() after backward() first"
            )
        super().zero_grad(*arguments, **named)  # type: ignore[misc]


class _Exchange:
    """The asynchronous allreduces of one optimizer's gradients."""

    def __init__(
        self,
        groups: list[_Group],
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
        self._left: dict[_Parameter, int] = {}
        self._hooks: list[Any] = []
        self.skips = False
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
            group.travelling = []
            for parameter in group.parameters:
                self._left[parameter] = self._passes

    def _hook(self, group: _Group) -> Callable[[_Parameter], None]:
        def arrived(parameter: _Parameter) -> None:
            if not self._before():
                return
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

    def _start(self, group: _Group) -> None:
        """Starts the allreduce of a group, all of whose gradients are there."""
        travelling = []
        for parameter in group.parameters:
            gradient = parameter.grad
            assert gradient is not None
            if gradient.is_sparse:
                continue  # by allgathers, in `synchronize`
            if not gradient.is_contiguous():
                gradient = parameter.grad = gradient.contiguous()
            if self._predivide != 1:
                gradient.div_(self._predivide)
            travelling.append(self._compression.compress(gradient.detach()))
        group.travelling = travelling
        try:
            if len(travelling) == 1:
                group.work = elastic.allreduce_async(group.name, travelling[0], self._op)
            elif travelling:
                group.work = elastic.grouped_allreduce_async(group.name, travelling, self._op)
        except elastic.Error:
            self.begin_step()  # the operations are over, such as where this worker was evicted
            raise

    def under_way(self) -> bool:
        return any(group.work is not None for group in self._groups)

    def synchronize(self) -> None:
        try:
            contributors = []
            for group in self._groups:
                if group.missing > 0 and any(self._left[p] > 0 for p in group.parameters):
                    self._complete(group)
            for group in self._groups:
                contributors += self._finish(group)
            self.contributors = contributors
        finally:
            # After an error, such as that this worker was evicted, the operations are over, too.
            self.begin_step()

    def _complete(self, group: _Group) -> None:
        """Zeros stand for gradients that this worker did not compute: other members may have."""
        for parameter in group.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
        group.missing = 0
        self._start(group)

    def _finish(self, group: _Group) -> list[elastic.Contributors]:
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


def _named(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, _Parameter]] | None,
) -> list[tuple[str, _Parameter]]:
    """The optimizer's parameters by name. Names are the same on all members, joiners included."""
    own = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if named_parameters is None:
        return [(f"parameter.{at}", parameter) for at, parameter in enumerate(own)]
    if isinstance(named_parameters, torch.nn.Module):
        named_parameters = named_parameters.named_parameters()
    named = list(named_parameters)
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in named):
        raise elastic.InvalidArgumentError(
            "DistributedOptimizer: named_parameters are pairs of name and parameter, as "
            "model.named_parameters() gives them"
        )
    names = [name for name, _ in named]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise elastic.InvalidArgumentError(
            f"DistributedOptimizer: named_parameters has the name {sorted(twice)[0]!r} twice; each "
            "parameter needs one of its own"
        )
    known = {id(parameter) for _, parameter in named}
    if any(id(parameter) not in known for parameter in own):
        raise elastic.InvalidArgumentError(
            "DistributedOptimizer: the optimizer has parameters that named_parameters lacks; give "
            "the names of all of them"
        )
    wanted = {id(parameter) for parameter in own}
    return [(name, parameter) for name, parameter in named if id(parameter) in wanted]


def _grouped(
    named: list[tuple[str, _Parameter]], groups: int | Sequence[Sequence[_Parameter]] | None
) -> list[_Group]:
    named = [(name, parameter) for name, parameter in named if parameter.requires_grad]
    if groups is None:
        return [_Group(name, [parameter]) for name, parameter in named]
    if isinstance(groups, int):
        if groups < 1:
            raise elastic.InvalidArgumentError("DistributedOptimizer: groups must be 1 or more")
        size = -(-len(named) // groups)
        parts = [named[at : at + size] for at in range(0, len(named), size)]
        return [_Group(part[0][0] + "...", [p for _, p in part]) for part in parts]
    name_of = {id(parameter): name for name, parameter in named}
    result, seen = [], set()
    for group in groups:
        for parameter in group:
            if id(parameter) not in name_of or id(parameter) in seen:
                raise elastic.InvalidArgumentError(
                    "DistributedOptimizer: groups has a parameter twice, or one that is not the "
                    "optimizer's"
                )
            seen.add(id(parameter))
        if group:
            result.append(_Group(name_of[id(group[0])] + "...", group))
    return result + [_Group(name, [p]) for name, p in named if id(p) not in seen]


def DistributedOptimizer(  # noqa: N802: makes an object of a class of this name
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, _Parameter]] | None = None,
    *,
    op: elastic.ReduceOp = elastic.AVERAGE,
    compression: Compression | str = Compression.NONE,
    backward_passes_per_step: int = 1,
    groups: int | Sequence[Sequence[_Parameter]] | None = None,
    gradient_predivide_factor: float = 1.0,
) -> Any:
    """Wraps an optimizer so that ``step`` uses gradients averaged over all members.

    Each gradient travels while the backward pass still computes the others. ``step`` waits for all
    of them. If a worker dies meanwhile, the step ends on the survivors with the averages over the
    workers that contributed to each gradient, and nothing is thrown away.

    Args:
        optimizer: any optimizer of PyTorch but LBFGS. The result is an optimizer of the same class.
        named_parameters: ``model.named_parameters()``: the names under which gradients travel.
            Without it they have numbers, by their place in the optimizer.
        op: AVERAGE or SUM.
        compression: the element type in which gradients travel.
        backward_passes_per_step: gradients of so many backward passes are added up before they
            travel.
        groups: gradients that travel as one unit: a number of groups, or lists of parameters.
        gradient_predivide_factor: divides gradients before and multiplies them after the
            average, for types of small range.

    Raises:
        InvalidArgumentError: a name is used twice, or names or groups do not fit the optimizer.
    """
    if not isinstance(optimizer, torch.optim.Optimizer) or isinstance(optimizer, _Distributed):
        raise elastic.InvalidArgumentError(
            "DistributedOptimizer: give an optimizer of PyTorch that is not wrapped yet, such as "
            f"torch.optim.SGD(model.parameters(), lr=0.1); this is a {type(optimizer).__name__}"
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise elastic.InvalidArgumentError(
            "DistributedOptimizer: LBFGS computes gradients within its step, several times; average "
            "them in its closure by elastic.grouped_allreduce"
        )
    if op not in (elastic.AVERAGE, elastic.SUM):
        raise elastic.InvalidArgumentError("DistributedOptimizer: op is AVERAGE or SUM")
    if gradient_predivide_factor != 1.0 and op != elastic.AVERAGE:
        raise elastic.InvalidArgumentError(
            "DistributedOptimizer: gradient_predivide_factor is for op=AVERAGE"
        )
    if backward_passes_per_step < 1:
        raise elastic.InvalidArgumentError(
            "DistributedOptimizer: backward_passes_per_step must be 1 or more"
        )
    exchange = _Exchange(
        _grouped(_named(optimizer, named_parameters), groups),
        op,
        Compression.of(compression),
        backward_passes_per_step,
        gradient_predivide_factor,
    )
    kind = type(optimizer)
    # The same object with the class extended: learning-rate schedulers that have it keep it.
    optimizer.__class__ = type(kind.__name__, (_Distributed, kind), {})
    optimizer._elastic = exchange
    return optimizer
