"""An optimizer that averages gradients over all members before each step."""

from __future__ import annotations

import contextlib
import functools
import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

import elastic
from elastic.torch.compression import Compression, Compressor
from elastic.torch.gradient_exchange import Exchange, Group, Parameter

class Distributed:
    """The methods that DistributedOptimizer adds to the class of the optimizer it is given."""

    _elastic: Exchange
    #: What a learning-rate scheduler has put in the place of the optimizer's own ``step``.
    _elastic_step: Callable[[], Any] | None = None
    #: The names that named_parameters gave, also of parameters that the optimizer has not.
    _elastic_names: dict[Parameter, str]

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

    @property
    def finite(self) -> bool:
        """Whether the latest averages may be used. False only under the option non_finite="skip",
        where a gradient has NaN or Inf, on all members alike: ``step`` then changes nothing."""
        return self._elastic.finite

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if closure is not None:  # it makes the gradients, as backward() does
            with torch.enable_grad():
                loss = closure()
        else:
            loss = None
        if not self._elastic.skips:
            self._elastic.synchronize()
        self._elastic.averaged = False
        step = self._elastic_step or super().step  # type: ignore[misc]
        stepped = step() if self._elastic.finite else None
        return loss if closure is not None else stepped

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters, whose gradients are averaged from now on. They have the names that
        named_parameters gave them, or numbers."""
        before = len(_parameters_of(self))
        super().add_param_group(param_group)  # type: ignore[misc]
        for at, parameter in enumerate(_parameters_of(self)[before:], before):
            name = self._elastic_names.get(parameter, f"parameter.{at}")
            self._elastic.add_later(name, parameter)

    def zero_grad(self, *arguments: Any, **named: Any) -> None:
        if self._elastic.under_way():
            raise elastic.InvalidArgumentError(
                "zero_grad was called while gradients are being averaged: call optimizer.step() or "
                "optimizer.synchronize() after backward() first"
            )
        self._elastic.averaged = False
        super().zero_grad(*arguments, **named)  # type: ignore[misc]


def _step_first(optimizer: Any) -> None:
    """A scheduler that was made before has put a ``step`` that counts calls onto the optimizer
    itself, in front of that of its class. It comes after that of Distributed from now on."""
    counting = vars(optimizer).pop("step", None)
    if counting is None:
        return
    reference = weakref.ref(optimizer)

    @functools.wraps(counting)  # with the scheduler's mark
    def step(*arguments: Any, **named: Any) -> Any:
        wrapped = reference()
        return type(wrapped).step(wrapped, *arguments, **named)  # type: ignore[union-attr]

    optimizer._elastic_step = counting
    optimizer.step = step


def _parameters_of(optimizer: Any) -> list[Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _names(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, Parameter]] | None,
) -> dict[Parameter, str]:
    """The names of the optimizer's parameters, and of others that named_parameters has. They are the
    same on all members, joiners included."""
    own = _parameters_of(optimizer)
    if named_parameters is None:
        return {parameter: f"parameter.{at}" for at, parameter in enumerate(own)}
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
    known = {parameter: name for name, parameter in named}
    if any(parameter not in known for parameter in own):
        raise elastic.InvalidArgumentError(
            "DistributedOptimizer: the optimizer has parameters that named_parameters lacks; give "
            "the names of all of them"
        )
    return known


def _grouped(
    named: list[tuple[str, Parameter]], groups: int | Sequence[Sequence[Parameter]] | None
) -> list[Group]:
    if groups is None:
        return [Group(name, [(name, parameter)]) for name, parameter in named]
    if isinstance(groups, int):
        if groups < 1:
            raise elastic.InvalidArgumentError("DistributedOptimizer: groups must be 1 or more")
        size = -(-len(named) // groups)
        parts = [named[at : at + size] for at in range(0, len(named), size)]
        return [Group(part[0][0] + "...", part) for part in parts]
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
            members = [(name_of[id(parameter)], parameter) for parameter in group]
            result.append(Group(members[0][0] + "...", members))
    return result + [Group(name, [(name, p)]) for name, p in named if id(p) not in seen]


def DistributedOptimizer(  # noqa: N802: makes an object of a class of this name
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, Parameter]] | None = None,
    *,
    op: elastic.ReduceOp = elastic.AVERAGE,
    compression: Compressor | str = Compression.NONE,
    backward_passes_per_step: int = 1,
    groups: int | Sequence[Sequence[Parameter]] | None = None,
    gradient_predivide_factor: float = 1.0,
) -> Any:
    """Wraps an optimizer so that ``step`` uses gradients averaged over all members.

    Each gradient travels while the backward pass still computes the others. ``step`` waits for all
    of them. If a worker dies meanwhile, the step ends on the survivors with the averages over the
    workers that contributed to each gradient, and nothing is thrown away. Under the options
    ``non_finite="skip"`` and ``"error"`` of ``elastic.init`` it looks for NaN and Inf in dense
    gradients in host memory.

    Parameters that are unfrozen later, or come by ``add_param_group``, are averaged from then on,
    each as a unit of its own. Unfreeze on all members before the same step, joiners included; add
    groups before ``run``, where a joiner loads the optimizer's state.

    Args:
        optimizer: any optimizer of PyTorch but LBFGS. The result is an optimizer of the same class.
        named_parameters: ``model.named_parameters()``: the names under which gradients travel.
            Without it they have numbers, by their place in the optimizer.
        op: AVERAGE or SUM.
        compression: the element type in which gradients travel, or a Compressor.
        backward_passes_per_step: gradients of so many backward passes are added up before they
            travel.
        groups: gradients that travel as one unit: a number of groups, or lists of parameters.
        gradient_predivide_factor: divides gradients before and multiplies them after the
            average, for types of small range.

    Raises:
        InvalidArgumentError: a name is used twice, or names or groups do not fit the optimizer.
        NotInitializedError: ``elastic.init`` was not called; of ``backward``.
        NotFiniteError: of ``step``, on all members alike, under ``non_finite="error"``.
    """
    if not isinstance(optimizer, torch.optim.Optimizer) or isinstance(optimizer, Distributed):
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
        raise elastic.InvalidArgumentError(
            f"DistributedOptimizer: op is {op!r}; give elastic.AVERAGE or elastic.SUM"
        )
    if not (gradient_predivide_factor > 0 and math.isfinite(gradient_predivide_factor)):
        raise elastic.InvalidArgumentError(
            "DistributedOptimizer: gradient_predivide_factor must be a finite number above 0"
        )
    if gradient_predivide_factor != 1.0 and op != elastic.AVERAGE:
        raise elastic.InvalidArgumentError(
            "DistributedOptimizer: gradient_predivide_factor is for op=AVERAGE"
        )
    if not isinstance(backward_passes_per_step, int) or backward_passes_per_step < 1:
        raise elastic.InvalidArgumentError(
            "DistributedOptimizer: backward_passes_per_step must be a whole number, 1 or more"
        )
    names = _names(optimizer, named_parameters)
    wanted = set(_parameters_of(optimizer))
    named = [(name, parameter) for parameter, name in names.items() if parameter in wanted]
    exchange = Exchange(
        _grouped([pair for pair in named if pair[1].requires_grad], groups),
        op,
        Compression.of(compression),
        backward_passes_per_step,
        gradient_predivide_factor,
        later=[pair for pair in named if not pair[1].requires_grad],
    )
    kind = type(optimizer)
    # The same object with the class extended: learning-rate schedulers that have it keep it.
    optimizer.__class__ = type(kind.__name__, (Distributed, kind), {})
    optimizer._elastic = exchange
    optimizer._elastic_names = names
    _step_first(optimizer)
    return optimizer
