"""elastic: allreduce for trainers on machines that come and go.

    import elastic

    elastic.init()
    state = elastic.State(weights=weights, sampler=sampler)

    def train(state):
        while not sampler.finished(epochs):
            gradient = ...                                      # over sampler.next(batch)
            contributors = elastic.allreduce(gradient)          # in place
            sampler.commit(contributors)
            weights[:] -= rate * gradient / len(contributors)
            state.commit()

    elastic.run(state, train)
    elastic.shutdown()

Start it with ``elasticrun -np 4 python train.py``. If a worker dies in the middle of an allreduce,
the same call returns the right result to the others.
"""

from typing import TYPE_CHECKING

from elastic import _loading

_loading.refuse_other_interpreters()
try:
    import elastic._core  # noqa: F401
except ImportError as error:
    raise _loading.explained(error) from error

from elastic import _ending  # noqa: F401
from elastic._core import (
    AdamW,
    BatchSum,
    Collectives,
    Context,
    Contributors,
    FiniteCheck,
    GlobalBatch,
    GradientCompressor,
    GradientNoise,
    Group,
    GroupRule,
    JoinOutcome,
    LearningRate,
    LoadingData,
    MomentumSgd,
    RandomStream,
    Rate,
    ReceivedMessage,
    ReduceOp,
    Root,
    RunOutcome,
    SampleAverage,
    Sampler,
    Schedule,
    StepGroup,
    StepTime,
    StepTimes,
    Traffic,
    Tuning,
    ViewChange,
    VirtualBatch,
    Work,
    allreduce,
    allreduce_async,
    average_by_samples,
    barrier,
    barrier_async,
    broadcast,
    broadcast_async,
    broadcast_from,
    exscan,
    exscan_async,
    generation,
    group,
    grouped_allreduce,
    grouped_allreduce_async,
    init,
    join,
    last_view_change,
    loading_data,
    local_rank,
    local_size,
    maxloc,
    members,
    minloc,
    rank,
    recv,
    recv_async,
    reduce,
    reduce_async,
    scan,
    scan_async,
    send,
    send_async,
    shutdown,
    size,
    start_timeline,
    step_times,
    stop_timeline,
    timeline_file,
    tuning,
    worker_id,
)
from elastic.async_collectives import (
    allgather_async,
    alltoall_async,
    gather_async,
    reduce_scatter_async,
    scatter_async,
)
from elastic.collectives import allgather, alltoall, gather, reduce_scatter, scatter
from elastic.errors import (
    BelowMinimumError,
    Error,
    EvictedError,
    InternalError,
    InvalidArgumentError,
    MismatchError,
    NotFiniteError,
    NotInitializedError,
    RefusedError,
    RemovedError,
    RootLostError,
    StoppedError,
    TimeoutError as TimeoutError,  # for type checkers, as it is not in __all__
    UnavailableError,
)
from elastic.grouped_collectives import (
    grouped_allgather,
    grouped_allgather_async,
    grouped_reduce_scatter,
    grouped_reduce_scatter_async,
)
from elastic.pending import Pending, wait_all, wait_any
from elastic.rows import Gathered, Scattered
from elastic.sparse_rows import (
    SparseRows,
    grouped_sparse_allreduce,
    sparse_allreduce,
    sparse_allreduce_async,
)
from elastic.state import State, run

__version__ = "0.1.0"

SUM = ReduceOp.SUM
AVERAGE = ReduceOp.AVERAGE
MIN = ReduceOp.MIN
MAX = ReduceOp.MAX
PRODUCT = ReduceOp.PRODUCT
BIT_AND = ReduceOp.BIT_AND
BIT_OR = ReduceOp.BIT_OR
BIT_XOR = ReduceOp.BIT_XOR
LOGICAL_AND = ReduceOp.LOGICAL_AND
LOGICAL_OR = ReduceOp.LOGICAL_OR
LOGICAL_XOR = ReduceOp.LOGICAL_XOR
ADASUM = ReduceOp.ADASUM
HIERARCHICAL_ADASUM = ReduceOp.HIERARCHICAL_ADASUM

# TimeoutError is not among them: `from elastic import *` leaves Python's own in place.
__all__ = [
    "ADASUM",
    "AVERAGE",
    "AdamW",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "BatchSum",
    "BelowMinimumError",
    "Collectives",
    "Context",
    "Contributors",
    "Error",
    "EvictedError",
    "FiniteCheck",
    "Gathered",
    "GlobalBatch",
    "GradientCompressor",
    "GradientNoise",
    "Group",
    "GroupRule",
    "HIERARCHICAL_ADASUM",
    "InternalError",
    "InvalidArgumentError",
    "JoinOutcome",
    "LOGICAL_AND",
    "LOGICAL_OR",
    "LOGICAL_XOR",
    "LearningRate",
    "LoadingData",
    "MAX",
    "MIN",
    "MismatchError",
    "MomentumSgd",
    "NotFiniteError",
    "NotInitializedError",
    "PRODUCT",
    "Pending",
    "RandomStream",
    "Rate",
    "ReceivedMessage",
    "ReduceOp",
    "RefusedError",
    "RemovedError",
    "Root",
    "RootLostError",
    "RunOutcome",
    "SUM",
    "SampleAverage",
    "Sampler",
    "Scattered",
    "Schedule",
    "SparseRows",
    "State",
    "StepGroup",
    "StepTime",
    "StepTimes",
    "StoppedError",
    "Traffic",
    "Tuning",
    "UnavailableError",
    "ViewChange",
    "VirtualBatch",
    "Work",
    "allgather",
    "allgather_async",
    "allreduce",
    "allreduce_async",
    "alltoall",
    "alltoall_async",
    "average_by_samples",
    "barrier",
    "barrier_async",
    "broadcast",
    "broadcast_async",
    "broadcast_from",
    "exscan",
    "exscan_async",
    "gather",
    "gather_async",
    "generation",
    "group",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_async",
    "grouped_reduce_scatter",
    "grouped_reduce_scatter_async",
    "grouped_sparse_allreduce",
    "init",
    "join",
    "last_view_change",
    "loading_data",
    "local_rank",
    "local_size",
    "maxloc",
    "members",
    "minloc",
    "rank",
    "recv",
    "recv_async",
    "reduce",
    "reduce_async",
    "reduce_scatter",
    "reduce_scatter_async",
    "run",
    "scan",
    "scan_async",
    "scatter",
    "scatter_async",
    "send",
    "send_async",
    "shutdown",
    "size",
    "sparse_allreduce",
    "sparse_allreduce_async",
    "start_timeline",
    "step_times",
    "stop_timeline",
    "timeline_file",
    "tuning",
    "wait_all",
    "wait_any",
    "worker_id",
]


if TYPE_CHECKING:  # `import elastic` is enough to use it
    from elastic import jax as jax, ray as ray


def __getattr__(name: str) -> object:
    if name in ("torch", "jax", "ray"):  # imported when they are used, as PyTorch and JAX take seconds
        import importlib

        return importlib.import_module(f"elastic.{name}")
    raise AttributeError(f"module 'elastic' has no attribute '{name}'")
