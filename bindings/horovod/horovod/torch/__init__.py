"""Horovod's interface for PyTorch.

import horovod.torch as hvd

hvd.init()
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
"""

from horovod.common.basics import (
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    rocm_built,
    shutdown,
    size,
)
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from horovod.common.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from horovod.common.timeline import start_timeline, stop_timeline
from horovod.torch import elastic
from horovod.torch.allgather import (
    allgather,
    allgather_async,
    grouped_allgather,
    grouped_allgather_async,
)
from horovod.torch.allreduce import (
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    barrier,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
)
from horovod.torch.alltoall import alltoall, alltoall_async
from horovod.torch.broadcast import broadcast, broadcast_, broadcast_async, broadcast_async_
from horovod.torch.compression import Compression
from horovod.torch.functions import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from horovod.torch.handles import poll, synchronize
from horovod.torch.join import join
from horovod.torch.optimizer import DistributedOptimizer
from horovod.torch.reducescatter import (
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter,
    reducescatter_async,
)
from horovod.torch.sparse import sparse_allreduce_async
from horovod.torch.sync_batch_norm import SyncBatchNorm
from horovod.torch.tensors import Adasum, Average, Max, Min, Product, Sum

__all__ = [name for name in dir() if not name.startswith("_")]
