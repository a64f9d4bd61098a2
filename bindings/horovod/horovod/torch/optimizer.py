"""elastic.torch.DistributedOptimizer, with Horovod's arguments."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch

import elastic.torch
from horovod.common import basics
from horovod.common.exceptions import as_horovod_errors
from horovod.common.process_sets import ProcessSet, check_known, global_process_set
from horovod.torch import tensors as t
from horovod.torch.adasum_optimizer import adasum_optimizer
from horovod.torch.compression import Compression
from horovod.torch.handles import drain


class _Distributed:
    """What differs from elastic's optimizer."""

    _parameter_names: dict[torch.Tensor, str]
    _process_set: ProcessSet
    _averaged = False

    def synchronize(self) -> None:
        """Waits until all gradients are averaged."""
        drain(self._process_set)  # sparse gradients are gathered, in order with what was submitted before
        with as_horovod_errors():
            super().synchronize()  # type: ignore[misc]
        self._averaged = True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if self._averaged and not self._elastic.skips:  # type: ignore[attr-defined]
            warnings.warn(
                "optimizer.step() called without optimizer.skip_synchronize() context after "
                "optimizer.synchronize(): the gradients are averaged a second time",
                stacklevel=2,
            )
        result = super().step(closure)  # type: ignore[misc]
        self._averaged = False
        return result

    def zero_grad(self, *arguments: Any, **named: Any) -> None:
        if self._elastic.under_way():  # type: ignore[attr-defined]
            raise AssertionError(
                "optimizer.zero_grad() was called while gradients are being averaged: call "
                "optimizer.step() or optimizer.synchronize() after loss.backward() first"
            )
        super().zero_grad(*arguments, **named)  # type: ignore[misc]

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Gradients of so many backward passes are added up before they travel."""
        self._elastic.set_passes(passes)  # type: ignore[attr-defined]


class _Exchanges:
    """The exchanges of gradients of all optimizers, for the end of the process."""

    def __init__(self) -> None:
        self.all: weakref.WeakSet[Any] = weakref.WeakSet()

    def busy(self) -> bool:
        groups = [group for exchange in self.all for group in exchange._groups]
        return any(group.work is not None and not group.work.ready() for group in groups)

    def drain(self) -> None:
        """Does nothing: each optimizer waits for its own."""


def forget_gradients() -> None:
    """For a training that is called again, perhaps between a backward pass and its step."""
    for exchange in _exchanges.all:
        exchange.forget()


_exchanges = _Exchanges()
basics._queues.append(_exchanges)


class _OwnCompressor:
    """A compressor of the script's own, as elastic's optimizer takes it."""

    def __init__(self, compressor: Any) -> None:
        self._compressor = compressor

    def compress(self, tensor: torch.Tensor) -> torch.Tensor:
        compressed, context = self._compressor.compress(tensor)
        travelling: torch.Tensor = compressed.view_as(compressed)  # an object to keep the context in
        travelling.context = context
        return travelling

    def decompress(self, travelled: torch.Tensor, tensor: torch.Tensor) -> None:
        tensor.copy_(self._compressor.decompress(travelled, travelled.context))


def _translate_errors(exchange: Any) -> None:
    """For the hooks of the backward pass, in which gradients are submitted."""
    submit = exchange._submit

    def as_horovod(group: Any) -> None:
        with as_horovod_errors():
            submit(group)

    exchange._submit = as_horovod


def _compressor(given: Any) -> Any:
    if given in (Compression.none, Compression.fp16):
        return given.elastic
    if callable(getattr(given, "compress", None)) and callable(getattr(given, "decompress", None)):
        return _OwnCompressor(given)
    raise ValueError(
        "DistributedOptimizer: compression is hvd.Compression.none or .fp16, or a class with "
        "compress(tensor) and decompress(tensor, ctx)"
    )


def _named(optimizer: torch.optim.Optimizer, named_parameters: Any) -> list[tuple[str, Any]]:
    if named_parameters is not None:
        return list(named_parameters)
    return [
        (f"allreduce.noname.{number}.{at}", parameter)
        for number, group in enumerate(optimizer.param_groups)
        for at, parameter in enumerate(group["params"])
    ]


def DistributedOptimizer(  # noqa: N802: Horovod's name
    optimizer: torch.optim.Optimizer,
    named_parameters: Any = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: t.Op = t.Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    sparse_as_dense: bool = False,
    process_set: Any = global_process_set,
) -> Any:
    """Wraps an optimizer so that ``step`` uses gradients averaged over all members. With ``op=Adasum``
    each member makes a step by its own gradients, and the members' steps are combined instead.

    Args:
        optimizer: it is changed, and returned.
        named_parameters: ``model.named_parameters()``: the names under which gradients travel.
        compression: Compression.none, Compression.fp16, or a Compressor of the script's own.
        backward_passes_per_step: gradients of so many backward passes are added up.
        op: Average, Sum or Adasum.
        gradient_predivide_factor: divides gradients before the average and multiplies them after.
        num_groups: the older name of ``groups``.
        groups: a number of groups that travel as one unit, or lists of parameters.
        sparse_as_dense: sparse gradients are sent as the rows that they have in any case.
        process_set: the members whose gradients are averaged. On other workers ``step`` is that of
            the optimizer itself.

    Raises:
        ValueError: names or options do not fit the optimizer.
    """
    check_known(process_set)
    op = t.op_of(op)
    if num_groups:
        warnings.warn("num_groups has been replaced by groups", DeprecationWarning, stacklevel=2)
    named = _named(optimizer, named_parameters)
    if op is t.Adasum:
        return adasum_optimizer(
            optimizer, named, compression, gradient_predivide_factor, process_set
        )
    wrapped = elastic.torch.DistributedOptimizer(
        optimizer,
        named,
        op=t.native(op),
        compression=_compressor(compression),
        backward_passes_per_step=backward_passes_per_step,
        groups=groups if groups is not None else num_groups or None,
        gradient_predivide_factor=gradient_predivide_factor,
    )
    kind = type(wrapped)
    wrapped.__class__ = type(kind.__name__, (_Distributed, kind), {})
    wrapped._elastic.start_weights = None  # as in Horovod, where they may differ
    wrapped._process_set = process_set
    if process_set is not global_process_set:
        wrapped._elastic.limit_to(process_set.on if process_set.included() else None)
    _exchanges.all.add(wrapped._elastic)
    _translate_errors(wrapped._elastic)
    wrapped._parameter_names = {parameter: name for name, parameter in named}
    return wrapped
