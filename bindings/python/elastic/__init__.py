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

from elastic._core import (
    Context,
    Contributors,
    FiniteCheck,
    LearningRate,
    Rate,
    ReduceOp,
    RunOutcome,
    Sampler,
    Schedule,
    Work,
    allreduce,
    allreduce_async,
    barrier,
    broadcast,
    generation,
    grouped_allreduce,
    grouped_allreduce_async,
    init,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
    worker_id,
)
from elastic.collectives import Gathered, Scattered, allgather, reduce_scatter
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
    TimeoutError,
    UnavailableError,
)
from elastic.state import State, run

__version__ = "0.1.0"

SUM = ReduceOp.SUM
AVERAGE = ReduceOp.AVERAGE
MIN = ReduceOp.MIN
MAX = ReduceOp.MAX
PRODUCT = ReduceOp.PRODUCT

# TimeoutError is not among them: `from elastic import *` leaves Python's own in place.
__all__ = [
    "AVERAGE",
    "BelowMinimumError",
    "Context",
    "Contributors",
    "Error",
    "EvictedError",
    "FiniteCheck",
    "Gathered",
    "InternalError",
    "InvalidArgumentError",
    "LearningRate",
    "MAX",
    "MIN",
    "MismatchError",
    "NotFiniteError",
    "NotInitializedError",
    "PRODUCT",
    "Rate",
    "ReduceOp",
    "RefusedError",
    "RemovedError",
    "RootLostError",
    "RunOutcome",
    "SUM",
    "Sampler",
    "Scattered",
    "Schedule",
    "State",
    "StoppedError",
    "UnavailableError",
    "Work",
    "allgather",
    "allreduce",
    "allreduce_async",
    "barrier",
    "broadcast",
    "generation",
    "grouped_allreduce",
    "grouped_allreduce_async",
    "init",
    "local_rank",
    "local_size",
    "rank",
    "reduce_scatter",
    "run",
    "shutdown",
    "size",
    "worker_id",
]


def __getattr__(name: str) -> object:
    if name == "torch":  # imported when it is used, as PyTorch takes seconds
        import importlib

        return importlib.import_module("elastic.torch")
    raise AttributeError(f"module 'elastic' has no attribute '{name}'")
