"""elastic as a backend of torch.distributed, for programs that expect a process group."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

import elastic
from elastic.torch.group_blocks import BlockCollectives
from elastic.torch.group_members import GroupMembers
from elastic.torch.group_messages import Messages
from elastic.torch.group_tensors import in_place
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


class ProcessGroup(BlockCollectives, Messages, dist.ProcessGroup):
    """All members of the job, or some of them. An operation is complete when its call returns, unless
    the program asked for an asynchronous one.

    ``rank()`` and ``size()`` are those of the membership of the moment: they change when a worker is
    lost, and at a ``commit``. A number of a rank means the worker that had it when the program last
    asked for one of the two, or when it last waited for an operation that is no broadcast: PyTorch
    asks once, and then makes several broadcasts. In a group of some members ranks are those in it.
    """

    def __init__(self, group: elastic.Group | None = None) -> None:
        """``group``: some of the members; without, it is all of them."""
        on = elastic._core if group is None else group
        super().__init__(on.rank(), on.size())
        self._group_name = "elastic"
        self._on = on
        self._named = GroupMembers(on)
        self._named.changed = _renumber
        if group is not None:
            _groups_of_some.add(self)

    def rank(self) -> int:
        """-1 before this worker is a member."""
        workers, own = self._ask().workers, elastic.worker_id()
        return workers.index(own) if own in workers else -1

    def size(self) -> int:
        return len(self._ask())

    def _ask(self) -> elastic.Contributors:
        if self._on is elastic._core:  # and PyTorch may ask next which ranks a group has
            for group in list(_groups_of_some):
                group._named.ask()
        return self._named.ask()

    def getBackendName(self) -> str:  # noqa: N802: PyTorch's name
        return "elastic"

    def name(self) -> str:
        return "elastic"

    def shutdown(self) -> None:
        """Called by ``destroy_process_group``. The worker stays in the job, so that a group can be
        made again, until the program ends."""

    #: What PyTorch asks of a backend: ``batch_isend_irecv`` begins each message by itself.
    supports_coalescing = False
    supports_splitting = False
    _supports_time_estimate = False

    def _get_backend(self, device: torch.device) -> Any:
        """The backend for a device: this group takes tensors of all of them."""
        return self

    def _set_group_name(self, name: str) -> None:
        self._group_name = name

    @property
    def group_name(self) -> str:
        """PyTorch keeps it in a backend in C++, which this group has not."""
        return self._group_name

    def allreduce(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        operation = _operation(opts)
        in_place(tensors, "all_reduce")
        if is_asynchronous(opts):
            with torch.no_grad():
                work = self._on.grouped_allreduce_async(tensors, operation)
            return started([Part(work, lambda: self._see(work))], tensors, opts)
        if len(tensors) == 1 and not tensors[0].requires_grad:
            self._named.last = self._on.allreduce(tensors[0], operation)
        else:
            with torch.no_grad():
                self._named.last = self._on.grouped_allreduce(tensors, operation)
        if hasattr(opts, "asyncOp"):
            return None  # what newer versions of PyTorch take from a call that has waited
        return complete(tensors)

    def allreduce_coalesced(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    def _see(self, work: Any) -> None:
        self._named.last = work.wait()

    def broadcast(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        root = opts.rootRank
        given = in_place(tensors, "broadcast")
        if is_asynchronous(opts):
            return started([self._copying(root, tensor) for tensor in given], tensors, opts)
        with torch.no_grad(), self._named.errors_of_root("broadcast", root):
            for tensor in given:
                self._on.broadcast_from(tensor, self._named.worker(root))
        return complete(tensors)

    def _copying(self, root: int, tensor: torch.Tensor) -> Part:
        with torch.no_grad():
            work = self._on.broadcast_async(tensor, self._named.root(root))

        def finish() -> None:
            with self._named.errors_of_root("broadcast", root):
                work.wait()

        return Part(work, finish)

    def reduce(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        operation = _operation(opts)
        given = in_place(tensors, "reduce")
        parts = [self._reducing(opts.rootRank, tensor, operation) for tensor in given]
        return started(parts, tensors, opts)

    def _reducing(self, root: int, tensor: torch.Tensor, operation: elastic.ReduceOp) -> Part:
        with torch.no_grad():
            work = self._on.reduce_async(tensor, self._named.root(root), operation)

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
            work = self._on.barrier_async()
            return started([Part(work, lambda: self._see(work))], [], opts)
        self._named.last = self._on.barrier()
        return complete([])


def _lacks(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"the process group 'elastic' has no {what}; it has all_reduce, broadcast, reduce, all_gather, "
        "reduce_scatter, all_to_all, gather, scatter, their forms for one tensor and for objects, send, "
        "recv and barrier"
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


def _make_process_group(opts: Any, backend_options: Any = None) -> ProcessGroup:
    """The group of all members, or of those with the ranks that ``new_group`` was given."""
    ranks = list(opts.global_ranks_in_group)  # none for all members
    if ranks != sorted(ranks):
        raise NotImplementedError(
            "the process group 'elastic' keeps the order of the job's ranks: give new_group the ranks "
            f"{sorted(ranks)}, not {ranks}"
        )
    workers = _members_of_default().workers
    if len(ranks) in (0, len(workers)):
        return ProcessGroup()
    rule = elastic.GroupRule.workers([workers[rank] for rank in ranks])
    return ProcessGroup(elastic.group(rule))


#: The groups of a part of the members.
_groups_of_some: weakref.WeakSet[ProcessGroup] = weakref.WeakSet()


def _renumber() -> None:
    """PyTorch keeps the ranks that the members of a group had when it was made. Puts those of the moment
    in their place."""
    known = dist.distributed_c10d._pg_group_ranks
    places = {worker: rank for rank, worker in enumerate(_members_of_default().workers)}
    for group in list(_groups_of_some):
        if group in known:
            workers = group._named.last.workers
            known[group] = {places[w]: at for at, w in enumerate(workers) if w in places}


def _members_of_default() -> elastic.Contributors:
    """The members as the program knows them by the numbers that it has given."""
    default = dist.group.WORLD if dist.is_initialized() else None
    return default._named.last if isinstance(default, ProcessGroup) else elastic.members()


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
    dist.Backend.register_backend("elastic", _make_process_group, extended_api=True, **named)
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
