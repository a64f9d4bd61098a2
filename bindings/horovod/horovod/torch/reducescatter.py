"""reducescatter, of one tensor and of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import elastic
from horovod.common.absent import refuse
from horovod.common.process_sets import ProcessSet, check_process_set, global_process_set
from horovod.torch import tensors as t
from horovod.torch.allgather import grouped_allgather
from horovod.torch.compression import Compression
from horovod.torch.handles import Handle, key_of, queue_of, synchronize


def _rows_of(rank: int, rows: int, size: int) -> tuple[int, int]:
    """First row and number of rows of a rank. The first ranks have one more if rows are left."""
    each, more = divmod(rows, size)
    return rank * each + min(rank, more), each + (rank < more)


def _padded(tensor: torch.Tensor, size: int) -> torch.Tensor:
    """The rows of each rank, filled up to the same number, as elastic divides into equal parts."""
    most = -(-tensor.shape[0] // size)
    if most * size == tensor.shape[0]:
        return tensor
    result = tensor.new_zeros((size, most, *tensor.shape[1:]))
    for rank in range(size):
        first, rows = _rows_of(rank, tensor.shape[0], size)
        result[rank, :rows] = tensor[first : first + rows]
    return result


def _perform(tensor: torch.Tensor, op: t.Op, reduction: elastic.ReduceOp, on: Any) -> Any:
    """This rank's rows, and the number of contributors."""
    size = len(t.agree(on, "reducescatter", *t.shape_and_type(tensor), op.name))
    part = elastic.reduce_scatter(_padded(tensor, size), reduction, context=on)
    while len(part.contributors) != size:
        # A member was lost, and the parts are others: again, for the members that are left.
        size = len(part.contributors)
        part = elastic.reduce_scatter(_padded(tensor, size), reduction, context=on)
    rank = part.contributors.workers.index(elastic.worker_id())
    _, rows = _rows_of(rank, tensor.shape[0], size)
    values = part.values.reshape(-1, *tensor.shape[1:])[:rows]
    return values.clone() if values.numel() < part.values.numel() else values, size


def _start(
    tensors: Sequence[torch.Tensor],
    name: str | None,
    op: t.Op,
    process_set: ProcessSet,
    prescale: float,
    postscale: float,
) -> Handle:
    check_process_set(process_set)
    on = process_set.on
    op = t.op_of(op)
    if op is t.Adasum:
        refuse("reducescatter of op=hvd.Adasum", "use hvd.allreduce, or op=hvd.Average")
    given = [t.copy_of(tensor, "reducescatter") for tensor in tensors]
    if not given or any(tensor.dim() == 0 for tensor in given):
        raise ValueError(
            "reducescatter: give tensors with at least one axis, along which they are divided"
        )
    key = key_of("reducescatter", name, process_set)
    late = op is t.Average and postscale != 1.0 and not given[0].dtype.is_floating_point
    reduction = elastic.SUM if late else t.native(op)
    for tensor in given:
        t.scale(tensor, prescale)

    def result(parts: list[Any]) -> list[torch.Tensor]:
        for values, contributors in parts:
            t.scale(values, postscale / contributors if late else postscale)
        return [values for values, _ in parts]

    work = queue_of(process_set).submit(
        lambda: [_perform(tensor, op, reduction, on) for tensor in given]
    )
    return Handle(work, result, key)


def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    op: t.Op = t.Average,
    process_set: Any = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    """Starts the reducescatter of several tensors, and returns its handle."""
    return _start(tensors, name, op, process_set, prescale_factor, postscale_factor)


def reducescatter_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: t.Op = t.Average,
    process_set: Any = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    """Starts a reducescatter, and returns its handle.

    Each member gets some rows, along the first axis, of the reduced tensor; ranks at the beginning
    get one more if they do not divide. It is matched by its order, which is the same on all ranks.
    """
    handle = _start([tensor], name, op, process_set, prescale_factor, postscale_factor)
    return handle.then(lambda parts: parts[0])


class _Reducescatter(torch.autograd.Function):
    """The gradient is made of those of all members' rows."""

    @staticmethod
    def forward(ctx: Any, how: dict[str, Any], *tensors: torch.Tensor) -> Any:
        ctx.factor = how["prescale_factor"] * how["postscale_factor"]
        if how["op"] is t.Sum:
            ctx.factor *= how["process_set"].size()
        ctx.process_set = how["process_set"]
        return tuple(synchronize(grouped_reducescatter_async(tensors, **how)))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        given = [(gradient * ctx.factor).contiguous() for gradient in gradients]
        return None, *grouped_allgather(given, process_set=ctx.process_set)


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    compression: Any = Compression.none,
    op: t.Op = t.Average,
    process_set: Any = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    """The reducescatter of several tensors, for which gradients can be computed."""
    how = {
        "name": name,
        "op": op,
        "process_set": process_set,
        "prescale_factor": prescale_factor,
        "postscale_factor": postscale_factor,
    }
    pairs = [compression.compress(tensor) for tensor in tensors]
    parts = _Reducescatter.apply(how, *(travelling for travelling, _ in pairs))
    return [compression.decompress(part, ctx) for part, (_, ctx) in zip(parts, pairs)]


def reducescatter(
    tensor: torch.Tensor,
    name: str | None = None,
    compression: Any = Compression.none,
    op: t.Op = t.Average,
    process_set: Any = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """This member's rows of the reduced tensor, for which gradients can be computed."""
    (result,) = grouped_reducescatter(
        [tensor], name, compression, op, process_set, prescale_factor, postscale_factor
    )
    return result
