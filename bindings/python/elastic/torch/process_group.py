"""elastic as a backend of torch.distributed, for programs that expect a process group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

import elastic
from elastic.torch.group_blocks import BlockCollectives
from elastic.torch.group_members import GroupMembers
from elastic.torch.group_work import Part, complete, is_asynchronous, started

#: What torch.distributed reduces with, by its name there.
_OPERATIONS = {
    "SUM": elastic.SUM,
    "AVG": elastic.AVERAGE,
    "PRODUCT": elastic.PRODUCT,
    "MIN": elastic.MIN,
    "MAX": elastic.MAX,
    "BAND": elastic.BIT_AND,
    "BOR": elastic.BIT_OR,
    "BXOR": elastic.BIT_XOR,
}
#: The same by the value that calls give.
_BY_VALUE = {
    getattr(dist.ReduceOp, name): operation
    for name, operation in _OPERATIONS.items()
    if hasattr(dist.ReduceOp, name)
}
#: What a process group has and this one lacks, in versions 1.13 and 2.15 of PyTorch.
_LACKING = (
    "all_to_all_single_coalesced",
    "monitored_barrier",
    "recv",
    "recv_anysource",
    "send",
    "split_group",
)


class _Store(dist.Store):
    """What torch.distributed's setup asks of a store. The workers have found each other already, so
    nothing has to be told to another one, and no worker waits."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, bytes] = {}

    def set(self, key: str, value: Any) -> None:
        self._values[key] = value if isinstance(value, bytes) else str(value).encode()

    def get(self, key: str) -> bytes:
        return self._values.get(key, b"")

    def add(self, key: str, amount: int) -> int:
        return elastic.size()  # workers that have come to the barrier of torch.distributed 1.x

    def wait(self, keys: Any, timeout: Any = None) -> None:
        pass

    def check(self, keys: list[str]) -> bool:
        return all(key in self._values for key in keys)

    def delete_key(self, key: str) -> bool:
        return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        return len(self._values)

    def set_timeout(self, timeout: Any) -> None:
        pass


#: PyTorch keeps only its part in C++ alive.
_STORE = _Store()


class ProcessGroup(BlockCollectives, dist.ProcessGroup):
    """All members of the job. An operation is complete when its call returns, unless the program
    asked for an asynchronous one.

    ``rank()`` and ``size()`` are those of the membership of the moment: they change when a worker is
    lost, and at a ``commit``. A number of a rank means the worker that had it when the program last
    asked for one of the two, or when it last waited for an operation that is no broadcast: PyTorch
    asks once, and then makes several broadcasts.
    """

    def __init__(self) -> None:
        super().__init__(elastic.rank(), elastic.size())
        self._group_name = "elastic"
        self._named = GroupMembers()

    def rank(self) -> int:
        """-1 before this worker is a member."""
        workers, own = self._named.ask().workers, elastic.worker_id()
        return workers.index(own) if own in workers else -1

    def size(self) -> int:
        return len(self._named.ask())

    def getBackendName(self) -> str:  # noqa: N802: PyTorch's name
        return "elastic"

    def name(self) -> str:
        return "elastic"

    def shutdown(self) -> None:
        """Called by ``destroy_process_group``. The worker stays in the job, so that a group can be
        made again, until the program ends."""

    def _get_backend(self, device: torch.device) -> Any:
        """Called by ``batch_isend_irecv``, which would send."""
        raise _lacks("backend for a device of its own, nor batch_isend_irecv")

    def _set_group_name(self, name: str) -> None:
        self._group_name = name

    @property
    def group_name(self) -> str:
        """PyTorch keeps it in a backend in C++, which this group has not."""
        return self._group_name

    def allreduce(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        operation = _operation(opts)
        _in_place(tensors, "all_reduce")
        if is_asynchronous(opts):
            with torch.no_grad():
                work = elastic.grouped_allreduce_async(tensors, operation)
            return started([Part(work, lambda: self._see(work))], tensors, opts)
        if len(tensors) == 1 and not tensors[0].requires_grad:
            self._named.last = elastic.allreduce(tensors[0], operation)
        else:
            with torch.no_grad():
                self._named.last = elastic.grouped_allreduce(tensors, operation)
        if hasattr(opts, "asyncOp"):
            return None  # what newer versions of PyTorch take from a call that has waited
        return complete(tensors)

    def allreduce_coalesced(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    def _see(self, work: Any) -> None:
        self._named.last = work.wait()

    def broadcast(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        root = opts.rootRank
        given = _in_place(tensors, "broadcast")
        if is_asynchronous(opts):
            return started([self._copying(root, tensor) for tensor in given], tensors, opts)
        with torch.no_grad(), self._named.errors_of_root("broadcast", root):
            for tensor in given:
                elastic.broadcast_from(tensor, self._named.worker(root))
        return complete(tensors)

    def _copying(self, root: int, tensor: torch.Tensor) -> Part:
        with torch.no_grad():
            work = elastic.broadcast_async(tensor, self._named.root(root))

        def finish() -> None:
            with self._named.errors_of_root("broadcast", root):
                work.wait()

        return Part(work, finish)

    def reduce(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        operation = _operation(opts)
        given = _in_place(tensors, "reduce")
        parts = [self._reducing(opts.rootRank, tensor, operation) for tensor in given]
        return started(parts, tensors, opts)

    def _reducing(self, root: int, tensor: torch.Tensor, operation: elastic.ReduceOp) -> Part:
        with torch.no_grad():
            work = elastic.reduce_async(tensor, self._named.root(root), operation)

        def finish() -> None:
            with self._named.errors_of_root("reduce", root):
                self._see(work)

        return Part(work, finish)

    def reduce_scatter(
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[Sequence[torch.Tensor]],
        opts: Any = None,
    ) -> Any:
        operation = _operation(opts)
        parts = [
            part
            for output, blocks in zip(outputs, inputs)
            for part in self._scatter_sum(
                output,
                torch.cat([block.detach().reshape(-1) for block in blocks]),
                operation,
                "reduce_scatter",
            )
        ]
        return started(parts, outputs, opts)

    def reduce_scatter_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Any:
        return self.reduce_scatter_single_coalesced([output], [tensor], opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        operation = _operation(opts)
        parts = [
            part
            for output, tensor in zip(outputs, inputs)
            for part in self._scatter_sum(
                output, tensor.detach().reshape(-1), operation, "reduce_scatter_tensor"
            )
        ]
        return started(parts, outputs, opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def barrier(self, opts: Any = None) -> Any:
        if is_asynchronous(opts):
            work = elastic.barrier_async()
            return started([Part(work, lambda: self._see(work))], [], opts)
        self._named.last = elastic.barrier()
        return complete([])


def _lacks(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"the process group 'elastic' has no {what}; it has all_reduce, broadcast, reduce, all_gather, "
        "reduce_scatter, all_to_all, gather, scatter, their forms for one tensor and for objects, and "
        "barrier"
    )


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(self: ProcessGroup, *arguments: Any, **named: Any) -> Any:
        raise _lacks(name)

    refuse.__name__ = name
    return refuse


for _name in _LACKING:
    setattr(ProcessGroup, _name, _refusal(_name))


def _operation(opts: Any) -> elastic.ReduceOp:
    if opts is None:
        return elastic.SUM
    given = getattr(opts.reduceOp, "op", opts.reduceOp)
    operation = _BY_VALUE.get(given)
    if operation is None:
        name = str(given).rsplit(".", 1)[-1]
        raise NotImplementedError(
            f"the process group 'elastic' has no reduction {name}; it has {', '.join(_OPERATIONS)}"
        )
    return operation


def _in_place(tensors: Sequence[torch.Tensor], call: str) -> list[torch.Tensor]:
    for tensor in tensors:
        if not tensor.is_contiguous():
            raise elastic.InvalidArgumentError(
                f"{call}: the tensor of shape {tuple(tensor.shape)} is not contiguous; give "
                "tensor.contiguous()"
            )
    return list(tensors)


def _make_process_group(store: Any, rank: int, size: int, timeout: Any) -> ProcessGroup:
    if size != elastic.size():
        raise NotImplementedError(
            f"the process group 'elastic' has all {elastic.size()} members; a group of {size} of "
            "them is not possible"
        )
    return ProcessGroup()


def _is_initialized() -> bool:
    try:
        elastic.rank()
    except elastic.NotInitializedError:
        return False
    return True


def _find_members(url: str, *arguments: Any, **named: Any) -> Any:
    """For ``init_method="elastic://"``: joins the job, which knows its members."""
    if not _is_initialized():
        elastic.init()
    yield _STORE, elastic.rank(), elastic.size()
    raise RuntimeError("this process has its place in the job already")


def register() -> None:
    """Makes "elastic" known to torch.distributed."""
    if hasattr(dist.Backend, "ELASTIC"):
        return
    named: dict[str, Any] = {}
    if "devices" in dist.Backend.register_backend.__code__.co_varnames:  # from 2.0 on
        named["devices"] = ["cpu", "cuda"]
    dist.Backend.register_backend("elastic", _make_process_group, **named)
    dist.rendezvous.__globals__["register_rendezvous_handler"]("elastic", _find_members)


def init_process_group() -> None:
    """Joins the job, unless ``elastic.init`` has, and makes its members the default group of
    torch.distributed.

    The same as ``torch.distributed.init_process_group("elastic", init_method="elastic://")``. Start
    the workers with elasticrun; torchrun starts no server that they could join.

    Raises:
        InvalidArgumentError: the job's variables are missing or wrong, as under torchrun, or
            ``elastic.shutdown`` was called before.
        UnavailableError: the rendezvous server cannot be reached.
    """
    dist.init_process_group("elastic", init_method="elastic://", rank=-1, world_size=-1)
