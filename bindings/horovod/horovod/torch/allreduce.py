"""allreduce, of one tensor and of several, in place and not; barrier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import elastic
from horovod.common.exceptions import as_horovod_errors
from horovod.common.process_sets import (
    IN_ORDER,
    ProcessSet,
    check_process_set,
    global_process_set,
)
from horovod.torch import tensors as t
from horovod.torch.compression import Compression
from horovod.torch.handles import Handle, forget_completed, key_of, queue_of, synchronize


def _start(
    given: Sequence[torch.Tensor],
    in_place: bool,
    name: str | None,
    op: t.Op,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> Handle:
    """Starts an allreduce. With a name it is matched by the name, without one by its order."""
    check_process_set(process_set)
    on = process_set.on
    take = t.check if in_place else t.copy_of
    tensors = [take(tensor, "allreduce") for tensor in given]
    outputs = list(given) if in_place else tensors
    if not tensors:
        raise ValueError("grouped_allreduce: give at least one tensor")
    key = key_of("allreduce", name, process_set)
    # The average of whole numbers is cut off once, after the scaling.
    late = op is t.Average and postscale != 1.0 and not tensors[0].dtype.is_floating_point
    reduction = elastic.SUM if late else t.native(op)
    for tensor in tensors:
        t.scale(tensor, prescale)

    def perform() -> elastic.Contributors:
        t.agree_to_reduce(on, "allreduce", *(t.shape_and_type(tensor) for tensor in tensors), op.name)
        contributors: elastic.Contributors
        if process_set is global_process_set:
            contributors = on.grouped_allreduce_async(IN_ORDER, tensors, reduction).wait()
        else:
            contributors = on.grouped_allreduce(tensors, reduction)
        return contributors

    def result(contributors: elastic.Contributors) -> list[torch.Tensor]:
        for tensor in tensors:
            t.scale(tensor, postscale / len(contributors) if late else postscale)
        return outputs

    if key is None:
        return Handle(queue_of(process_set).submit(perform), result)
    with as_horovod_errors():
        return Handle(on.grouped_allreduce_async(key, tensors, reduction), result, key)


def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: t.Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = global_process_set,
) -> Handle:
    """Starts an allreduce that overwrites several tensors as one unit."""
    op = t.op_of(op, average)
    return _start(tensors, True, name, op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: t.Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = global_process_set,
) -> Handle:
    """Starts an allreduce of copies of several tensors as one unit.

    Args:
        average: the older form of ``op``: True is Average, False is Sum.
        name: operations with names may be started in any order, those without in the same order on
            all ranks.
        op: Average (the default), Sum, Min, Max, Product or, for floats, Adasum.
        prescale_factor: multiplies the tensors before.
        postscale_factor: multiplies the results.
        process_set: the members that take part, all of which make the call.
    """
    op = t.op_of(op, average)
    return _start(tensors, False, name, op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor], *how: Any, **named: Any
) -> list[torch.Tensor]:
    """``grouped_allreduce_async_``, complete."""
    result: list[torch.Tensor] = synchronize(grouped_allreduce_async_(tensors, *how, **named))
    return result


def allreduce_async_(tensor: torch.Tensor, *how: Any, **named: Any) -> Handle:
    """``grouped_allreduce_async_`` of one tensor."""
    return _single(grouped_allreduce_async_([tensor], *how, **named))


def allreduce_async(tensor: torch.Tensor, *how: Any, **named: Any) -> Handle:
    """``grouped_allreduce_async`` of one tensor."""
    return _single(grouped_allreduce_async([tensor], *how, **named))


def _single(handle: Handle) -> Handle:
    return handle.then(lambda outputs: outputs[0])


def allreduce_(tensor: torch.Tensor, *how: Any, **named: Any) -> torch.Tensor:
    """``allreduce_async_``, complete."""
    result: torch.Tensor = synchronize(allreduce_async_(tensor, *how, **named))
    return result


class _Allreduce(torch.autograd.Function):
    """The gradient of an allreduce is the allreduce of the gradients."""

    @staticmethod
    def forward(ctx: Any, how: dict[str, Any], *tensors: torch.Tensor) -> Any:
        ctx.how = {**how, "name": None}
        return tuple(synchronize(grouped_allreduce_async(tensors, **how)))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        given = [gradient.contiguous() for gradient in gradients]
        return (None, *synchronize(grouped_allreduce_async(given, **ctx.how)))


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: t.Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = global_process_set,
) -> list[torch.Tensor]:
    """The allreduce of several tensors as one unit, for which gradients can be computed."""
    how = {
        "op": t.op_of(op, average),
        "name": name,
        "prescale_factor": prescale_factor,
        "postscale_factor": postscale_factor,
        "process_set": process_set,
    }
    pairs = [compression.compress(tensor) for tensor in tensors]
    sums = _Allreduce.apply(how, *(travelling for travelling, _ in pairs))
    return [compression.decompress(total, ctx) for total, (_, ctx) in zip(sums, pairs)]


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: t.Op | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: Any = global_process_set,
) -> torch.Tensor:
    """The allreduce of a copy of ``tensor``, for which gradients can be computed."""
    (result,) = grouped_allreduce(
        [tensor], average, name, compression, op, prescale_factor, postscale_factor, process_set
    )
    return result


def barrier(process_set: Any = global_process_set) -> None:
    """Waits until all members have called it, whatever else is under way."""
    check_process_set(process_set)
    t.check_initialized()
    with as_horovod_errors():
        process_set.on.allreduce_async("horovod.barrier", torch.zeros(1)).wait()
    forget_completed()
