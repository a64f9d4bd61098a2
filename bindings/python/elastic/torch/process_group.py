"""elastic as a backend of torch.distributed, for programs that expect a process group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

import elastic

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
    "all_to_all_single",
    "all_to_all_single_coalesced",
    "alltoall",
    "alltoall_base",
    "gather",
    "gather_into_tensor",
    "gather_single",
    "monitored_barrier",
    "recv",
    "recv_anysource",
    "reduce",
    "scatter",
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


#: An id that is no worker's.
_NO_WORKER = 0

#: PyTorch keeps only its part in C++ alive.
_STORE = _Store()


class ProcessGroup(dist.ProcessGroup):
    """All members of the job. Each operation is complete when its call returns.

    ``rank()`` and ``size()`` are those of the membership of the moment: they change when a worker is
    lost, and at a ``commit``. A number of a rank means the worker that had it when the program last
    asked for one of the two, or when the last operation that is no broadcast was completed: PyTorch
    asks once, and then makes several broadcasts.
    """

    def __init__(self) -> None:
        super().__init__(elastic.rank(), elastic.size())
        self._group_name = "elastic"
        #: By whose ranks the program names workers.
        self._members = elastic.members()

    def rank(self) -> int:
        """-1 before this worker is a member."""
        self._members = elastic.members()
        workers, own = self._members.workers, elastic.worker_id()
        return workers.index(own) if own in workers else -1

    def size(self) -> int:
        self._members = elastic.members()
        return len(self._members)

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
        if len(tensors) == 1 and not tensors[0].requires_grad:
            self._members = elastic.allreduce(tensors[0], operation)
        else:
            with torch.no_grad():
                self._members = elastic.grouped_allreduce(tensors, operation)
        if getattr(opts, "asyncOp", True):
            return _complete(tensors)
        return None  # what newer versions of PyTorch take from a call that has waited

    def allreduce_coalesced(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        with torch.no_grad():
            for tensor in _in_place(tensors, "broadcast"):
                self._copy_from(opts.rootRank, tensor)
        return _complete(tensors)

    def _copy_from(self, root: int, tensor: torch.Tensor) -> None:
        """Copies from the worker that the program means by ``root``, whatever becomes of the ranks."""
        workers = self._members.workers
        is_rank = 0 <= root < len(workers)
        try:
            elastic.broadcast_from(tensor, workers[root] if is_rank else _NO_WORKER)
        except elastic.RootLostError as error:
            self._members = elastic.members()
            if not is_rank and "is no member" in str(error):  # and no other rank meant one that was
                raise elastic.InvalidArgumentError(
                    f"broadcast: root {root} is no rank; there are {len(workers)}"
                ) from None
            raise elastic.RootLostError(
                f"broadcast: the worker with rank {root} is lost; call again, by the present numbers "
                f"of torch.distributed.get_rank() ({error})"
            ) from None
        except elastic.MismatchError as error:
            self._members = elastic.members()
            raise elastic.MismatchError(
                "broadcast: the ranks gave different roots, or tensors of different sizes, or the "
                "members have changed and the same number meant different workers: call again, by "
                f"the present numbers of torch.distributed.get_rank() ({error})"
            ) from None

    def _blocks(self, block: torch.Tensor, alike: list[int], otherwise: str) -> Any:
        """Gathers blocks of members that all give the same numbers ``alike``; an error on all of
        them, with the text ``otherwise``, if one does not."""
        try:
            return elastic._core._allgather(block, alike)
        except elastic.MismatchError as error:
            self._members = elastic.members()
            raise elastic.MismatchError(f"{otherwise} ({error})") from None

    def allgather(
        self,
        outputs: Sequence[Sequence[torch.Tensor]],
        inputs: Sequence[torch.Tensor],
        opts: Any = None,
    ) -> Any:
        for blocks, tensor in zip(outputs, inputs):
            rows = self._gather(tensor, len(blocks), "all_gather")
            with torch.no_grad():
                for block, row in zip(blocks, rows):
                    block.copy_(row.view(block.shape))
        return _complete(outputs)

    def allgather_coalesced(
        self,
        outputs: Sequence[Sequence[torch.Tensor]],
        inputs: Sequence[torch.Tensor],
        opts: Any = None,
    ) -> Any:
        # One list of outputs for each rank, with one tensor for each input.
        return self.allgather(list(zip(*outputs)), inputs, opts)

    def all_gather_single(
        self, output: torch.Tensor, tensor: torch.Tensor, *opts: Any
    ) -> Any:
        if tensor.numel() > 0:
            rows = self._gather(tensor, output.numel() // tensor.numel(), "all_gather_into_tensor")
            with torch.no_grad():
                output.copy_(rows.view(output.shape))
        return _complete([output])

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], *opts: Any
    ) -> Any:
        for output, tensor in zip(outputs, inputs):
            self.all_gather_single(output, tensor)
        return _complete(outputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def reduce_scatter(
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[Sequence[torch.Tensor]],
        opts: Any = None,
    ) -> Any:
        for output, parts in zip(outputs, inputs):
            flat = torch.cat([part.detach().reshape(-1) for part in parts])
            self._scatter(output, flat, opts, "reduce_scatter")
        return _complete(outputs)

    def reduce_scatter_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Any:
        self._scatter(output, tensor.detach().reshape(-1), opts, "reduce_scatter_tensor")
        return _complete([output])

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        for output, tensor in zip(outputs, inputs):
            self.reduce_scatter_single(output, tensor, opts)
        return _complete(outputs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def barrier(self, opts: Any = None) -> Any:
        self._members = elastic.barrier()
        return _complete([])

    def _gather(self, tensor: torch.Tensor, ranks: int, call: str) -> torch.Tensor:
        """The tensors of all members, a row for each."""
        block = tensor.detach().reshape(-1).contiguous()
        values, _, contributors = self._blocks(
            block,
            [len(block), ranks],
            f"{call}: the ranks gave tensors of different sizes, or for different numbers of ranks: "
            "the members may have changed; call again with tensors for "
            "torch.distributed.get_world_size() ranks",
        )
        self._members = contributors
        if len(contributors) != ranks:
            raise _wrong_size(call, ranks, len(contributors))
        rows: torch.Tensor = values.reshape(ranks, -1)
        return rows

    def _scatter(self, output: torch.Tensor, flat: torch.Tensor, opts: Any, call: str) -> None:
        """This rank's part of a sum."""
        count = output.numel()
        if count == 0:
            return
        part = elastic.reduce_scatter(flat.contiguous(), _operation(opts))
        self._members = part.contributors
        ranks = flat.numel() // count
        if part.values.numel() != count or len(part.contributors) != ranks:
            raise _wrong_size(call, ranks, len(part.contributors))
        with torch.no_grad():
            output.copy_(part.values.view(output.shape))


def _lacks(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"the process group 'elastic' has no {what}; it has all_reduce, broadcast, all_gather, "
        "reduce_scatter, their forms for one tensor, coalesced and for objects, and barrier"
    )


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(self: ProcessGroup, *arguments: Any, **named: Any) -> Any:
        raise _lacks(name)

    refuse.__name__ = name
    return refuse


for _name in _LACKING:
    setattr(ProcessGroup, _name, _refusal(_name))


def _wrong_size(call: str, expected: int, contributed: int) -> elastic.Error:
    return elastic.InvalidArgumentError(
        f"{call}: the tensors are for {expected} ranks, and {contributed} contributed: the members "
        "have changed, or the sizes are wrong; call again with tensors for "
        "torch.distributed.get_world_size() ranks"
    )


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


def _complete(result: Any) -> Any:
    """A finished operation. A Work of Python's own hangs the DistributedDataParallel of 1.13."""
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)


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
