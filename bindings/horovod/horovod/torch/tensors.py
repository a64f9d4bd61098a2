"""Checks and arithmetic of the tensors of an operation."""

from __future__ import annotations

import hashlib
from typing import Any

import torch

import elastic
from horovod.common import basics
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import IN_ORDER
from horovod.common.root import CLAIM_LENGTH, Root, claim, root_in


class Op:
    """A reduction, by Horovod's name."""

    def __init__(self, name: str, op: elastic.ReduceOp) -> None:
        self.name = name
        self.op = op

    def __repr__(self) -> str:
        return f"hvd.{self.name}"


Average = Op("Average", elastic.AVERAGE)
Sum = Op("Sum", elastic.SUM)
Min = Op("Min", elastic.MIN)
Max = Op("Max", elastic.MAX)
Product = Op("Product", elastic.PRODUCT)
Adasum = Op("Adasum", elastic.ADASUM)

_SUPPORTED = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.bool,
)


def op_of(op: Op | None, average: bool | None = None) -> Op:
    """The operation that ``op`` and the older argument ``average`` name together."""
    if op is not None and average is not None:
        raise ValueError("give op or average, not both; average is the older form of op")
    if op is None:
        op = Sum if average is False else Average
    if not isinstance(op, Op):
        raise ValueError(
            f"op is {op!r}; it is one of hvd.Average, Sum, Min, Max, Product and Adasum"
        )
    return op


def check_initialized() -> None:
    basics._check()


def native(op: Op) -> elastic.ReduceOp:
    return op.op


def check(tensor: Any, call: str) -> torch.Tensor:
    """``tensor`` without its history of gradients.

    Raises:
        ValueError: it cannot be sent.
    """
    check_initialized()
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"{call}: give a tensor of PyTorch; this is a {type(tensor).__name__}")
    if tensor.is_sparse:
        raise ValueError(f"{call}: the tensor is sparse; use hvd.sparse_allreduce_async")
    if tensor.dtype not in _SUPPORTED:
        raise ValueError(f"{call}: tensors of {tensor.dtype} are not supported")
    if not tensor.is_contiguous():
        raise ValueError(f"{call}: the tensor is not contiguous; give tensor.contiguous()")
    return tensor.detach()


def copy_of(tensor: Any, call: str) -> torch.Tensor:
    return check(tensor, call).clone()


def scale(tensor: torch.Tensor, factor: float) -> None:
    """Multiplies in place: whole numbers as float64, halves as float32."""
    if factor == 1.0:
        return
    if not tensor.dtype.is_floating_point:
        tensor.copy_(tensor.double().mul_(factor))
    elif tensor.dtype in (torch.float16, torch.bfloat16):
        tensor.copy_(tensor.float().mul_(factor))
    else:
        tensor.mul_(factor)


def agree(on: Any, call: str, *signature: Any) -> elastic.Contributors:
    """Compares what the ranks are about to do; elastic compares types and numbers of elements, and
    Horovod shapes, too. Returns the members that are about to do it: none of them is in hvd.join
    before they have done it. ``on`` is what has their collectives: ``ProcessSet.on``.

    Raises:
        HorovodInternalError: on all of them alike, if they differ.
        MismatchError: on all of them alike, if another member is in hvd.join.
    """
    if on is not elastic._core:
        return agree_to_reduce(on, call, *signature)
    digest = _digest(call, signature)
    gathered = elastic.allgather_async(torch.tensor([digest]), name=IN_ORDER).wait()
    if (gathered.values != digest).any():
        raise _disagreement(call, signature)
    return gathered.contributors


def agree_to_reduce(on: Any, call: str, *signature: Any) -> elastic.Contributors:
    """``agree`` before an allreduce, which goes on without members that are in hvd.join."""
    digest = _digest(call, signature)
    extremes = torch.tensor([digest, -digest])
    contributors: elastic.Contributors
    if on is elastic._core:
        contributors = elastic.allreduce_async(IN_ORDER, extremes, elastic.MAX).wait()
    else:
        contributors = on.allreduce(extremes, elastic.MAX)
    if int(extremes[0]) != -int(extremes[1]):
        raise _disagreement(call, signature)
    return contributors


def agree_on_root(
    on: Any, call: str, rank: int, view: elastic.Contributors, *signature: Any
) -> Root:
    """The worker that has ``rank`` in the oldest of the views in which the members began the call.
    ``view`` is that of this one.

    Raises:
        HorovodInternalError: on all members alike, if what they are about to do differs.
        ValueError: on all members alike, if there is no such rank.
    """
    own = claim(_digest(call, (*signature, rank)), rank, view)
    name = IN_ORDER if on is elastic._core else None
    claims = elastic.allgather_async(own, name=name, context=on).wait().values
    if len(set(claims[::CLAIM_LENGTH].tolist())) > 1:
        raise _disagreement(call, (*signature, rank))
    return root_in(claims, rank)


def _digest(call: str, signature: Any) -> int:
    text = repr((call, *signature))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")


def _disagreement(call: str, signature: Any) -> HorovodInternalError:
    what = " ".join(str(part) for part in signature)
    return HorovodInternalError(
        f"{call}: the ranks gave tensors of different shapes or types, or different arguments; "
        f"this one has {what}"
    )


def shape_and_type(tensor: torch.Tensor) -> tuple[list[int], str]:
    return list(tensor.shape), str(tensor.dtype)
