"""allreduce of sparse tensors."""

from __future__ import annotations

from typing import Any

import torch

from elastic.torch.sparse_rows import packed, sparse_tensor, unpacked
from horovod.common.process_sets import global_process_set
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
    op = t.op_of(op)
    if op not in (t.Average, t.Sum):
        raise ValueError(f"sparse_allreduce_async: op is {op}; it is hvd.Average or hvd.Sum")
    given = tensor.detach().coalesce()

    def result(blocks: Any) -> torch.Tensor:
        (gathered,) = blocks
        indices, values = unpacked(gathered.values, given)
        if op is t.Average:
            values = values / len(gathered.counts)
        return sparse_tensor(indices, values, given.shape).coalesce()

    return start([packed(given)], name, process_set).then(result)
