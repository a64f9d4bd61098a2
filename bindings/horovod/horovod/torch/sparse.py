"""allreduce of sparse tensors."""

from __future__ import annotations

from typing import Any

import torch

from horovod.common.process_sets import check_process_set, global_process_set
from horovod.torch import tensors as t
from horovod.torch.allgather import start
from horovod.torch.handles import Handle


def sparse_allreduce_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: t.Op = t.Average,
    process_set: Any = global_process_set,
) -> Handle:
    """Starts the sum or average of sparse tensors. Calling the handle waits for it.

    The rows of all members are gathered. It is matched by its order, the same on all ranks.
    """
    check_process_set(process_set)
    op = t.op_of(op)
    if op not in (t.Average, t.Sum):
        raise ValueError(f"sparse_allreduce_async: op is {op}; it is hvd.Average or hvd.Sum")
    given = tensor.detach().coalesce()
    indices, values = given.indices(), given.values()
    rows = len(values)
    # One unit, so that places and values are of the same contributors.
    packed = torch.cat([_bytes(indices.t(), rows), _bytes(values, rows)], dim=1)

    def result(blocks: Any) -> torch.Tensor:
        (gathered,) = blocks
        width = 8 * indices.shape[0]
        places = _of_bytes(gathered.values[:, :width], torch.int64)
        everything = _of_bytes(gathered.values[:, width:], values.dtype)
        everything = everything.reshape(-1, *values.shape[1:])
        if op is t.Average:
            everything = everything / len(gathered.counts)
        return torch.sparse_coo_tensor(
            places.reshape(-1, indices.shape[0]).t(), everything, given.shape
        ).coalesce()

    return start([packed], name).then(result)


def _bytes(matrix: torch.Tensor, rows: int) -> torch.Tensor:
    """The bytes of each row."""
    flat = matrix.contiguous().reshape(-1).view(torch.uint8)
    return flat.reshape(rows, -1) if rows else flat.reshape(0, matrix[:1].numel())


def _of_bytes(rows: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return rows.reshape(-1).contiguous().view(dtype)
