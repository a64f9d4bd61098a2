"""The C++ library as Python sees it. Written by make_stub.py."""

from typing import Any, Protocol, TypeAlias, overload

from typing_extensions import Buffer

from elastic.pending import Pending

class _DLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

Tensor: TypeAlias = Buffer | _DLPack

from collections.abc import Callable, Sequence
import enum

import numpy
import numpy.random
from numpy.typing import NDArray


class ReduceOp(enum.Enum):
    """How contributions are combined, element by element."""

    SUM = 0

    AVERAGE = 1

    MIN = 2

    MAX = 3

    PRODUCT = 4

    BIT_AND = 5

    BIT_OR = 6

    BIT_XOR = 7

    LOGICAL_AND = 8

    LOGICAL_OR = 9

    LOGICAL_XOR = 10

    ADASUM = 11

    HIERARCHICAL_ADASUM = 12

class Contributors:
    """
    The workers whose parts are in the result of a collective. ``len()`` of it is their number,
    the same on every rank that returned from the call.
    """

    def __len__(self) -> int: ...

    @property
    def workers(self) -> list[int]:
        """Their ids, in the order of their ranks."""

    @property
    def generation(self) -> int:
        """The number of the view in which the call was completed."""

    def __repr__(self) -> str: ...

class Work:
    """
    An asynchronous operation under way. Keeps its tensors alive until it is complete.
    """

    def wait(self, stream: Any = None) -> Contributors:
        """
        Waits until the operation is complete, and returns its Contributors. Raises its error if it failed.
        With ``stream``, such as ``torch.cuda.current_stream()``, it does not wait for the device: what is
        queued on that stream from now on sees the results. It still waits until all members have the
        operation, so that no death changes them any more.
        """

    def wait_for(self, seconds: float) -> bool:
        """Waits at most so long, and returns whether the operation is complete."""

    def ready(self) -> bool:
        """Returns whether the operation is complete, without waiting."""

    @property
    def contributors(self) -> Contributors:
        """The Contributors of the completed operation."""

    def then(self, function: Callable[[Work], object]) -> None:
        """
        Calls ``function`` once, with this Work, when the operation is complete, successfully or not: on
        a thread of the library, or at once on this one. Other operations wait meanwhile, so it should be
        short. In it collectives and waits for other operations raise InvalidArgumentError. An exception
        that leaves it goes to ``sys.unraisablehook``.
        """

    def _result(self) -> Any: ...

def _wait_any(works: Sequence[Work]) -> int: ...

def _wait_all(works: Sequence[Work]) -> None: ...

class Root:
    """
    The root of a collective: a rank of the present view, or a worker. A rank is given as it is,
    ``gather(block, 0)``, and means the worker that has it when the call begins.
    """

    def __init__(self, rank: int) -> None: ...

    @staticmethod
    def worker(id: int) -> Root:
        """
        The root that is this worker, one of ``members().workers``, whatever becomes of the ranks.
        """

    def __repr__(self) -> str: ...

class Collectives:
    """
    The collectives of all members of a job (``Context``) or of some of them (``Group``).
    """

    @overload
    def allreduce(self, tensor: bool, op: ReduceOp = ...) -> bool: ...
    @overload
    def allreduce(self, tensor: int, op: ReduceOp = ...) -> int: ...
    @overload
    def allreduce(self, tensor: float, op: ReduceOp = ...) -> float: ...
    @overload
    def allreduce(self, tensor: Tensor, op: ReduceOp = ..., out: Tensor | None = None, *, prescale: float = ..., postscale: float = ...) -> Contributors:
        """
        Combines the tensors of all members element by element, and gives the result to all.

        Args:
            tensor: a contiguous array of any shape, the same on all members; overwritten by the
                result unless ``out`` is given. Or a number, which is returned combined.
            op: ReduceOp.SUM, AVERAGE, MIN, MAX or PRODUCT. AVERAGE divides by the number of workers
                that contributed. BIT_AND, BIT_OR, BIT_XOR for integers and bools; LOGICAL_AND,
                LOGICAL_OR, LOGICAL_XOR, which give 0 or 1; ADASUM, the adaptive sum of floats, and
                HIERARCHICAL_ADASUM, that of the averages of the hosts.
            out: an array of the same count and element type that receives the result.
            prescale: multiplies the tensor of each member before they are combined, if they are floats.
            postscale: multiplies the result; under AVERAGE after the division.

        Returns:
            The Contributors: the workers whose tensors are in the result. For a number: the result.

        Raises:
            MismatchError: members made different calls; on all of them, and the job goes on.
            InvalidArgumentError: the tensor is not contiguous, is read-only, or has no element type
                of elastic.
            EvictedError, RemovedError, StoppedError, BelowMinimumError, TimeoutError: the training
                ends; ``run`` sees to the first three.

        If a member dies, the call returns the right result to the others. It was computed from
        exactly the members before the death or exactly the survivors, and is bit-identical on all.
        """

    def grouped_allreduce(self, tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, *, prescale: float = 1.0, postscale: float = 1.0) -> Contributors:
        """
        Allreduces several tensors in place as one unit: after a failure either all of them hold the
        results over the same contributors, or none was changed.
        """

    def broadcast(self, tensor: Tensor, root: int) -> Contributors:
        """
        Copies the tensor of rank ``root`` to all members, in place.

        Raises:
            RootLostError: the root died before any survivor had its data; call again.
        """

    def broadcast_from(self, tensor: Tensor, root: int) -> Contributors:
        """
        ``broadcast`` from a worker, which is the same one whatever becomes of the ranks: for roots that
        were chosen earlier, and for several broadcasts from one root. ``root`` is one of ``members().workers``.

        Raises:
            RootLostError: as ``broadcast``, and if the worker is no member.
        """

    def _allgather(self, block: Tensor, row: Sequence[int]) -> tuple[Any, list[int], Contributors]: ...

    def _allgather_into(self, block: Tensor, out: Tensor, row: Sequence[int]) -> tuple[int, list[int], Contributors]: ...

    def _reduce_scatter(self, tensor: Tensor, op: ReduceOp = ReduceOp.SUM) -> tuple[Any, int, Contributors]: ...

    def _reduce_scatter_into(self, tensor: Tensor, out: Tensor, op: ReduceOp = ReduceOp.SUM) -> tuple[int, int, Contributors]: ...

    def barrier(self) -> Contributors:
        """Waits until every member has called it, and returns the Contributors."""

    def _grouped_reduce_scatter(self, tensors: Sequence[Tensor], out: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM) -> tuple[list[tuple[int, int]], Contributors]: ...

    def _grouped_allgather(self, blocks: Sequence[Tensor], out: Sequence[Tensor]) -> tuple[list[tuple[int, list[int]]], Contributors]: ...

    def _grouped_reduce_scatter_async(self, tensors: Sequence[Tensor], out: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM) -> Work: ...

    def _grouped_allgather_async(self, blocks: Sequence[Tensor], out: Sequence[Tensor]) -> Work: ...

    def minloc(self, values: Tensor, indices: Tensor) -> Contributors:
        """
        Gives all members the least value of all, element by element, with the index that came with it.

        Args:
            values: a contiguous array in host memory, with as many elements on all members.
            indices: an array of int64 with an index for each value: any numbers of the program's own.

        Both are overwritten. Among equal values the one with the smallest index is taken; NaN comes before
        every number. One operation carries both, so they have the same contributors after a death. All
        pairs go to all members: it suits small arrays.

        Returns:
            The Contributors: the workers whose values are in the result.

        Raises:
            MismatchError: members gave another number or type of values; on all members.
            InvalidArgumentError: the values are not as many as the indices, or these are no int64.
        """

    def maxloc(self, values: Tensor, indices: Tensor) -> Contributors:
        """As ``minloc``, with the greatest value of all members."""

    def _sparse_allreduce(self, indices: Tensor, values: Tensor, width: int, rows: int, op: ReduceOp) -> tuple[Any, Any, Contributors]: ...

    def _grouped_sparse_allreduce(self, tensors: Sequence[tuple[object, object, int, int]], op: ReduceOp) -> tuple[list[Any], Contributors]: ...

    def _sparse_allreduce_async(self, indices: Tensor, values: Tensor, width: int, rows: int, op: ReduceOp, name: str | None) -> Work: ...

    def _alltoall(self, tensor: Tensor, counts: Sequence[int] | None, to: Contributors | None, row: Sequence[int]) -> tuple[Any, list[int], Contributors]: ...

    def _alltoall_into(self, tensor: Tensor, out: Tensor, counts: Sequence[int] | None, to: Contributors | None, row: Sequence[int]) -> tuple[int, list[int], Contributors]: ...

    def _gather(self, block: Tensor, root: int | Root, row: Sequence[int]) -> tuple[Any, list[int], Contributors]: ...

    def _gather_into(self, block: Tensor, out: Tensor, root: int | Root, row: Sequence[int]) -> tuple[int, list[int], Contributors]: ...

    def _scatter(self, tensor: Tensor, root: int | Root, counts: Sequence[int] | None, to: Contributors | None) -> tuple[Any, int, Contributors]: ...

    def _scatter_into(self, tensor: Tensor, out: Tensor, root: int | Root, counts: Sequence[int] | None, to: Contributors | None) -> tuple[int, int, Contributors]: ...

    def reduce(self, tensor: Tensor, root: int | Root, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None) -> Contributors:
        """
        Combines the tensors of all members as an allreduce does; ``root`` alone gets the result, in
        place or in ``out``. Other members' ``out`` is not used, and their tensors stay as they are.

        Returns:
            The Contributors.

        Raises:
            RootLostError: the root died before it had all tensors; call again.
            MismatchError: there is no such rank, on all members.
        """

    def scan(self, tensor: Tensor, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None) -> Contributors:
        """
        Combines the tensors of the members with lower ranks and of this one, element by element: each
        member gets another result, in place or in ``out``. Ranks are those of the view that completes
        the call. An average is over the tensors that are in it.

        Returns:
            The Contributors: all workers of that view.
        """

    def exscan(self, tensor: Tensor, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None) -> Contributors:
        """
        As ``scan``, without the tensor of this member. Rank 0 gets the neutral element of ``op``: 0 of a
        sum and an average, 1 of a product, the greatest value of a minimum, the least of a maximum.
        """

    @overload
    def allreduce_async(self, name: str, tensor: Tensor, op: ReduceOp = ReduceOp.SUM, *, prescale: float = 1.0, postscale: float = 1.0) -> Work:
        """
        Starts an allreduce in place under a name, and returns its Work.

        Names may be submitted in any order and from any thread; tensors that are ready together
        travel together. Each member submits a name once before it is submitted again anywhere.
        """

    @overload
    def allreduce_async(self, tensor: Tensor, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None) -> Work:
        """
        Starts an allreduce in program order: the same calls in the same order on all members, among them
        those that wait.
        """

    @overload
    def grouped_allreduce_async(self, name: str, tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, *, prescale: float = 1.0, postscale: float = 1.0) -> Work:
        """Starts a grouped_allreduce under a name, and returns its Work."""

    @overload
    def grouped_allreduce_async(self, tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM) -> Work:
        """Starts a grouped_allreduce in program order."""

    def broadcast_async(self, tensor: Tensor, root: int | Root, *, name: str | None = None) -> Work:
        """
        Starts a broadcast, and returns its Work: in program order, or under a name.

        With a name a root that is given as a rank is the worker that has it in the view in which the
        call runs.
        """

    def _allgather_async(self, block: Tensor, row: Sequence[int], name: str | None = None) -> Work: ...

    def _reduce_scatter_async(self, tensor: Tensor, op: ReduceOp = ReduceOp.SUM, name: str | None = None) -> Work: ...

    def _reduce_scatter_into_async(self, tensor: Tensor, out: Tensor, op: ReduceOp = ReduceOp.SUM, name: str | None = None) -> Work: ...

    def _alltoall_async(self, tensor: Tensor, counts: Sequence[int] | None, to: Contributors | None, row: Sequence[int], name: str | None = None) -> Work: ...

    def _alltoall_into_async(self, tensor: Tensor, out: Tensor, counts: Sequence[int] | None, to: Contributors | None, row: Sequence[int], name: str | None = None) -> Work: ...

    def _gather_async(self, block: Tensor, root: int | Root, row: Sequence[int], name: str | None = None) -> Work: ...

    def _scatter_async(self, tensor: Tensor, root: int | Root, counts: Sequence[int] | None, to: Contributors | None, name: str | None = None) -> Work: ...

    def reduce_async(self, tensor: Tensor, root: int | Root, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None, *, name: str | None = None) -> Work:
        """
        Starts a reduce, and returns its Work: in program order, or under a name.
        """

    def scan_async(self, tensor: Tensor, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None, *, name: str | None = None) -> Work:
        """
        Starts a scan, and returns its Work: in program order, or under a name.
        """

    def exscan_async(self, tensor: Tensor, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None, *, name: str | None = None) -> Work:
        """
        Starts an exscan, and returns its Work: in program order, or under a name.
        """

    def barrier_async(self, *, name: str | None = None) -> Work:
        """
        Starts a barrier, and returns its Work: in program order, or under a name.
        """

    def send(self, tensor: Tensor, to: int | Root, tag: int = 0) -> Contributors:
        """
        Sends an array to another member, which receives it by ``recv`` with the same tag.

        Messages from one member to another with one tag keep their order; others overtake each other.
        Nothing is buffered: the call returns when the message is there, so two members that send to each
        other at once use ``send_async`` or ``recv_async``. Each message costs a barrier of the job.

        Args:
            tensor: a contiguous array in host memory.
            to: a rank, or Root.worker(...).
            tag: a number by which the other member tells messages apart.

        Returns:
            The Contributors: the two workers.

        Raises:
            RootLostError: the other one is no member, or left the job before the message was complete.
            MismatchError: the element types differ; on both.
            InvalidArgumentError: there is no such rank, or it is this worker.
        """

    def recv(self, out: Tensor, source: int | Root, tag: int = 0) -> ReceivedMessage:
        """
        Receives a message that another member sends by ``send`` with the same tag.

        Args:
            out: an array of the element type of the message, with room for it. The rest stays as it is.
            source: the rank that sends, or Root.worker(...).
            tag: that of the sender.

        Returns:
            The ReceivedMessage: its count of elements, and the two workers.

        Raises:
            InvalidArgumentError: as ``send``, and if there is no room for the message, which is lost then.
            RootLostError, MismatchError: as ``send``.
        """

    def send_async(self, tensor: Tensor, to: int | Root, tag: int = 0) -> Work:
        """
        Starts a ``send``, and returns its Work. The array stays as it is until that is complete.
        """

    def recv_async(self, out: Tensor, source: int | Root, tag: int = 0) -> Pending[ReceivedMessage]:
        """
        Starts a ``recv``, and returns its Pending, whose ``wait`` returns the ReceivedMessage.
        """

class Context(Collectives):
    """One worker's membership in a job."""

    def __init__(self, **options: Any) -> None:
        """Joins a job, as ``init`` does. For programs with several jobs."""

    def shutdown(self) -> None:
        """As the function ``shutdown``."""

    def join(self) -> JoinOutcome:
        """
        Says that this worker has no more data, and waits until all members have said so.

        Until then the allreduces with a name and the barriers with a name of the others go on without it:
        a sum lacks its tensors, and an average divides by all members all the same. Their other calls with
        a name end in MismatchError. Calls without a name do not know of it, and wait for this worker.

        Waits first for all calls of this worker with a name, and for those of this thread without one.

        Raises:
            InvalidArgumentError: another thread is in ``join``.
        """

    def rank(self) -> int:
        """The rank in the present view, with which it changes; -1 while joining."""

    def size(self) -> int:
        """The number of members of the present view; 0 while joining."""

    def local_rank(self) -> int:
        """The rank among the members on this host."""

    def local_size(self) -> int:
        """The number of members on this host."""

    def generation(self) -> int:
        """The number of the present view; 0 while joining."""

    def worker_id(self) -> int:
        """This worker, as it appears in Contributors.workers."""

    def members(self) -> Contributors:
        """
        The members of the present view, all of one moment; none while joining.
        """

    def group(self, rule: GroupRule) -> Group:
        """
        The group of the members that ``rule`` chooses, with collectives of its own. The same rule gives the
        same group.
        """

    def average_by_samples(self, sums: Sequence[Tensor], samples: int) -> SampleAverage:
        """
        Averages gradients over samples, for workers with unequal batches: the arrays hold sums over
        ``samples`` samples of this worker, and afterwards the sum over all divided by the true number of
        samples. A worker without data calls it with zeros and 0. Returns a SampleAverage.
        """

    def step_times(self) -> StepTimes:
        """Where the time of this worker's steps went."""

    def last_view_change(self) -> ViewChange:
        """The latest change of the members that this worker went through."""

    def start_timeline(self, path: str) -> None:
        """
        Writes a timeline of this worker from now on, for Perfetto: ``trace.json`` becomes ``trace.<worker>.json``.
        """

    def stop_timeline(self) -> None:
        """Completes the timeline's file. Nothing without one."""

    def timeline_file(self) -> str:
        """The file that the timeline is written to; empty without one."""

    def tuning(self) -> Tuning:
        """How operations are done in the present view."""

    def _run(self, state: _State, body: object) -> RunOutcome: ...

def init(**options: Any) -> None:
    """
    Joins the job that elasticrun or mpirun started this process for.

    Options have the names of the environment variables without ``ELASTIC_`` and in small letters,
    such as ``bucket_bytes="16M"`` or ``view_timeout_ms=5000``; the environment overrides them.

    Raises:
        InvalidArgumentError: there is no such option, or its value is not allowed.
        UnavailableError: no server at the address.
        RefusedError: the job refused this worker.
        TimeoutError: too few workers came.
    """

def shutdown() -> None:
    """
    Says that the job is done, and waits for the other members to say so too: for half a second,
    and longer only to give them results that they lack.
    """

class JoinOutcome:
    """What ``join`` returns, on all members alike."""

    @property
    def last_rank(self) -> int:
        """The rank, among the contributors, that called ``join`` last."""

    @property
    def contributors(self) -> Contributors:
        """The workers that have joined."""

    def __repr__(self) -> str: ...

def join() -> JoinOutcome:
    """
    Says that this worker has no more data, and waits until all members have said so.

    Until then the allreduces with a name and the barriers with a name of the others go on without it:
    a sum lacks its tensors, and an average divides by all members all the same. Their other calls with
    a name end in MismatchError. Calls without a name do not know of it, and wait for this worker.

    Waits first for all calls of this worker with a name, and for those of this thread without one.

    Raises:
        InvalidArgumentError: another thread is in ``join``.
    """

def rank() -> int:
    """The rank in the present view, with which it changes; -1 while joining."""

def size() -> int:
    """The number of members of the present view; 0 while joining."""

def local_rank() -> int:
    """The rank among the members on this host."""

def local_size() -> int:
    """The number of members on this host."""

def generation() -> int:
    """The number of the present view; 0 while joining."""

def worker_id() -> int:
    """This worker, as it appears in Contributors.workers."""

def members() -> Contributors:
    """
    The members of the present view, all of one moment; none while joining.
    """

@overload
def allreduce(tensor: bool, op: ReduceOp = ...) -> bool: ...
@overload
def allreduce(tensor: int, op: ReduceOp = ...) -> int: ...
@overload
def allreduce(tensor: float, op: ReduceOp = ...) -> float: ...
@overload
def allreduce(tensor: Tensor, op: ReduceOp = ..., out: Tensor | None = None, *, prescale: float = ..., postscale: float = ...) -> Contributors:
    """
    Combines the tensors of all members element by element, and gives the result to all.

    Args:
        tensor: a contiguous array of any shape, the same on all members; overwritten by the
            result unless ``out`` is given. Or a number, which is returned combined.
        op: ReduceOp.SUM, AVERAGE, MIN, MAX or PRODUCT. AVERAGE divides by the number of workers
            that contributed. BIT_AND, BIT_OR, BIT_XOR for integers and bools; LOGICAL_AND,
            LOGICAL_OR, LOGICAL_XOR, which give 0 or 1; ADASUM, the adaptive sum of floats, and
            HIERARCHICAL_ADASUM, that of the averages of the hosts.
        out: an array of the same count and element type that receives the result.
        prescale: multiplies the tensor of each member before they are combined, if they are floats.
        postscale: multiplies the result; under AVERAGE after the division.

    Returns:
        The Contributors: the workers whose tensors are in the result. For a number: the result.

    Raises:
        MismatchError: members made different calls; on all of them, and the job goes on.
        InvalidArgumentError: the tensor is not contiguous, is read-only, or has no element type
            of elastic.
        EvictedError, RemovedError, StoppedError, BelowMinimumError, TimeoutError: the training
            ends; ``run`` sees to the first three.

    If a member dies, the call returns the right result to the others. It was computed from
    exactly the members before the death or exactly the survivors, and is bit-identical on all.
    """

def grouped_allreduce(tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, *, prescale: float = 1.0, postscale: float = 1.0) -> Contributors:
    """
    Allreduces several tensors in place as one unit: after a failure either all of them hold the
    results over the same contributors, or none was changed.
    """

def broadcast(tensor: Tensor, root: int) -> Contributors:
    """
    Copies the tensor of rank ``root`` to all members, in place.

    Raises:
        RootLostError: the root died before any survivor had its data; call again.
    """

def broadcast_from(tensor: Tensor, root: int) -> Contributors:
    """
    ``broadcast`` from a worker, which is the same one whatever becomes of the ranks: for roots that
    were chosen earlier, and for several broadcasts from one root. ``root`` is one of ``members().workers``.

    Raises:
        RootLostError: as ``broadcast``, and if the worker is no member.
    """

def _allgather(block: Tensor, row: Sequence[int]) -> tuple[Any, list[int], Contributors]: ...

def _allgather_into(block: Tensor, out: Tensor, row: Sequence[int]) -> tuple[int, list[int], Contributors]: ...

def _reduce_scatter(tensor: Tensor, op: ReduceOp = ReduceOp.SUM) -> tuple[Any, int, Contributors]: ...

def _reduce_scatter_into(tensor: Tensor, out: Tensor, op: ReduceOp = ReduceOp.SUM) -> tuple[int, int, Contributors]: ...

def barrier() -> Contributors:
    """Waits until every member has called it, and returns the Contributors."""

def _grouped_reduce_scatter(tensors: Sequence[Tensor], out: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM) -> tuple[list[tuple[int, int]], Contributors]: ...

def _grouped_allgather(blocks: Sequence[Tensor], out: Sequence[Tensor]) -> tuple[list[tuple[int, list[int]]], Contributors]: ...

def _grouped_reduce_scatter_async(tensors: Sequence[Tensor], out: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM) -> Work: ...

def _grouped_allgather_async(blocks: Sequence[Tensor], out: Sequence[Tensor]) -> Work: ...

def minloc(values: Tensor, indices: Tensor) -> Contributors:
    """
    Gives all members the least value of all, element by element, with the index that came with it.

    Args:
        values: a contiguous array in host memory, with as many elements on all members.
        indices: an array of int64 with an index for each value: any numbers of the program's own.

    Both are overwritten. Among equal values the one with the smallest index is taken; NaN comes before
    every number. One operation carries both, so they have the same contributors after a death. All
    pairs go to all members: it suits small arrays.

    Returns:
        The Contributors: the workers whose values are in the result.

    Raises:
        MismatchError: members gave another number or type of values; on all members.
        InvalidArgumentError: the values are not as many as the indices, or these are no int64.
    """

def maxloc(values: Tensor, indices: Tensor) -> Contributors:
    """As ``minloc``, with the greatest value of all members."""

def _sparse_allreduce(indices: Tensor, values: Tensor, width: int, rows: int, op: ReduceOp) -> tuple[Any, Any, Contributors]: ...

def _grouped_sparse_allreduce(tensors: Sequence[tuple[object, object, int, int]], op: ReduceOp) -> tuple[list[Any], Contributors]: ...

def _sparse_allreduce_async(indices: Tensor, values: Tensor, width: int, rows: int, op: ReduceOp, name: str | None) -> Work: ...

def _alltoall(tensor: Tensor, counts: Sequence[int] | None, to: Contributors | None, row: Sequence[int]) -> tuple[Any, list[int], Contributors]: ...

def _alltoall_into(tensor: Tensor, out: Tensor, counts: Sequence[int] | None, to: Contributors | None, row: Sequence[int]) -> tuple[int, list[int], Contributors]: ...

def _gather(block: Tensor, root: int | Root, row: Sequence[int]) -> tuple[Any, list[int], Contributors]: ...

def _gather_into(block: Tensor, out: Tensor, root: int | Root, row: Sequence[int]) -> tuple[int, list[int], Contributors]: ...

def _scatter(tensor: Tensor, root: int | Root, counts: Sequence[int] | None, to: Contributors | None) -> tuple[Any, int, Contributors]: ...

def _scatter_into(tensor: Tensor, out: Tensor, root: int | Root, counts: Sequence[int] | None, to: Contributors | None) -> tuple[int, int, Contributors]: ...

def reduce(tensor: Tensor, root: int | Root, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None) -> Contributors:
    """
    Combines the tensors of all members as an allreduce does; ``root`` alone gets the result, in
    place or in ``out``. Other members' ``out`` is not used, and their tensors stay as they are.

    Returns:
        The Contributors.

    Raises:
        RootLostError: the root died before it had all tensors; call again.
        MismatchError: there is no such rank, on all members.
    """

def scan(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None) -> Contributors:
    """
    Combines the tensors of the members with lower ranks and of this one, element by element: each
    member gets another result, in place or in ``out``. Ranks are those of the view that completes
    the call. An average is over the tensors that are in it.

    Returns:
        The Contributors: all workers of that view.
    """

def exscan(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None) -> Contributors:
    """
    As ``scan``, without the tensor of this member. Rank 0 gets the neutral element of ``op``: 0 of a
    sum and an average, 1 of a product, the greatest value of a minimum, the least of a maximum.
    """

@overload
def allreduce_async(name: str, tensor: Tensor, op: ReduceOp = ReduceOp.SUM, *, prescale: float = 1.0, postscale: float = 1.0) -> Work:
    """
    Starts an allreduce in place under a name, and returns its Work.

    Names may be submitted in any order and from any thread; tensors that are ready together
    travel together. Each member submits a name once before it is submitted again anywhere.
    """

@overload
def allreduce_async(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None) -> Work:
    """
    Starts an allreduce in program order: the same calls in the same order on all members, among them
    those that wait.
    """

@overload
def grouped_allreduce_async(name: str, tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, *, prescale: float = 1.0, postscale: float = 1.0) -> Work:
    """Starts a grouped_allreduce under a name, and returns its Work."""

@overload
def grouped_allreduce_async(tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM) -> Work:
    """Starts a grouped_allreduce in program order."""

def broadcast_async(tensor: Tensor, root: int | Root, *, name: str | None = None) -> Work:
    """
    Starts a broadcast, and returns its Work: in program order, or under a name.

    With a name a root that is given as a rank is the worker that has it in the view in which the
    call runs.
    """

def _allgather_async(block: Tensor, row: Sequence[int], name: str | None = None) -> Work: ...

def _reduce_scatter_async(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, name: str | None = None) -> Work: ...

def _reduce_scatter_into_async(tensor: Tensor, out: Tensor, op: ReduceOp = ReduceOp.SUM, name: str | None = None) -> Work: ...

def _alltoall_async(tensor: Tensor, counts: Sequence[int] | None, to: Contributors | None, row: Sequence[int], name: str | None = None) -> Work: ...

def _alltoall_into_async(tensor: Tensor, out: Tensor, counts: Sequence[int] | None, to: Contributors | None, row: Sequence[int], name: str | None = None) -> Work: ...

def _gather_async(block: Tensor, root: int | Root, row: Sequence[int], name: str | None = None) -> Work: ...

def _scatter_async(tensor: Tensor, root: int | Root, counts: Sequence[int] | None, to: Contributors | None, name: str | None = None) -> Work: ...

def reduce_async(tensor: Tensor, root: int | Root, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None, *, name: str | None = None) -> Work:
    """
    Starts a reduce, and returns its Work: in program order, or under a name.
    """

def scan_async(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None, *, name: str | None = None) -> Work:
    """
    Starts a scan, and returns its Work: in program order, or under a name.
    """

def exscan_async(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, out: Tensor | None = None, *, name: str | None = None) -> Work:
    """
    Starts an exscan, and returns its Work: in program order, or under a name.
    """

def barrier_async(*, name: str | None = None) -> Work:
    """
    Starts a barrier, and returns its Work: in program order, or under a name.
    """

class ReceivedMessage:
    """A message that has come into an array of the caller, at its beginning."""

    @property
    def count(self) -> int:
        """The elements of the message."""

    @property
    def contributors(self) -> Contributors:
        """The two workers."""

    def __repr__(self) -> str: ...

def send(tensor: Tensor, to: int | Root, tag: int = 0) -> Contributors:
    """
    Sends an array to another member, which receives it by ``recv`` with the same tag.

    Messages from one member to another with one tag keep their order; others overtake each other.
    Nothing is buffered: the call returns when the message is there, so two members that send to each
    other at once use ``send_async`` or ``recv_async``. Each message costs a barrier of the job.

    Args:
        tensor: a contiguous array in host memory.
        to: a rank, or Root.worker(...).
        tag: a number by which the other member tells messages apart.

    Returns:
        The Contributors: the two workers.

    Raises:
        RootLostError: the other one is no member, or left the job before the message was complete.
        MismatchError: the element types differ; on both.
        InvalidArgumentError: there is no such rank, or it is this worker.
    """

def recv(out: Tensor, source: int | Root, tag: int = 0) -> ReceivedMessage:
    """
    Receives a message that another member sends by ``send`` with the same tag.

    Args:
        out: an array of the element type of the message, with room for it. The rest stays as it is.
        source: the rank that sends, or Root.worker(...).
        tag: that of the sender.

    Returns:
        The ReceivedMessage: its count of elements, and the two workers.

    Raises:
        InvalidArgumentError: as ``send``, and if there is no room for the message, which is lost then.
        RootLostError, MismatchError: as ``send``.
    """

def send_async(tensor: Tensor, to: int | Root, tag: int = 0) -> Work:
    """
    Starts a ``send``, and returns its Work. The array stays as it is until that is complete.
    """

def recv_async(out: Tensor, source: int | Root, tag: int = 0) -> Pending[ReceivedMessage]:
    """
    Starts a ``recv``, and returns its Pending, whose ``wait`` returns the ReceivedMessage.
    """

class GroupRule:
    """
    Says which members are in a group. It is applied when the members are made the same: in ``run``,
    and at each ``commit`` at which workers join. Between these moments a group loses the members that
    leave, and nothing else changes.
    """

    @staticmethod
    def per_host() -> GroupRule:
        """The members on this worker's host."""

    @staticmethod
    def across_hosts() -> GroupRule:
        """
        The members that have this worker's rank among the members on their host.
        """

    @staticmethod
    def every(step: int, first: int = 0) -> GroupRule:
        """The ranks first, first + step, first + 2 * step and so on."""

    @staticmethod
    def ranks(ranks: Sequence[int]) -> GroupRule:
        """
        The members that have these ranks. Ranks that no member has are left out.
        """

    @staticmethod
    def workers(workers: Sequence[int]) -> GroupRule:
        """These workers (``members().workers``), as far as they are members."""

    @staticmethod
    def by(name: str, function: Callable[[list[tuple[int, int]], int], Sequence[int]]) -> GroupRule:
        """
        As ``function(members, own)`` chooses. ``members`` has a pair of a worker's id and the number of
        its host for each member, in rank order; ``own`` is the id of this worker. It returns the ids of the
        members that are in the group, and must give the same group on all of them.

        Rules with the same name are the same rule: the function that came first is used.
        """

    @property
    def name(self) -> str:
        """The rule in words, such as ``per host``."""

    def __repr__(self) -> str: ...

def group(rule: GroupRule) -> Group:
    """
    The group of the members that ``rule`` chooses, with collectives of its own. The same rule gives the
    same group.
    """

class Group(Collectives):
    """
    Some of a job's members, with collectives of their own, which ``group`` makes.

    Ranks and roots are those in the group. After a death the same call returns the right result on the
    survivors. The calls of a group keep their order among themselves only.

    A collective raises InvalidArgumentError on a worker that is not in the group.
    """

    def rank(self) -> int:
        """
        This worker's rank in the group; -1 if it is not in it, or is joining the job.
        """

    def size(self) -> int:
        """The number of members."""

    def members(self) -> Contributors:
        """The members, in the order of their ranks in the group."""

    @property
    def name(self) -> str:
        """Its rule in words."""

    def group(self, rule: GroupRule) -> Group:
        """
        The group of some of this group's members: ``rule`` is applied to them as if they were the job.
        """

    def __repr__(self) -> str: ...

class Sampler:
    """
    Distributes the samples of each epoch to the workers, each exactly once, however the workers
    change. Put it into the State.
    """

    def __init__(self, size: int, seed: int = 0) -> None:
        """
        Distributes samples 0 to size-1; the same ``size`` and ``seed`` on all workers.
        """

    def next(self, batch_per_worker: int) -> NDArray[numpy.int64]:
        """
        Draws the next global batch, and returns this worker's share: an array of int64 with the
        indices of samples. At an epoch's end the share may be short or empty; the worker still takes part
        in the step.
        """

    def commit(self, contributors: Contributors | Sequence[Contributors]) -> None:
        """
        Ends the draw. ``contributors`` is what the step's allreduce returned, or a list of them if the
        step had several. Samples of workers that are not in all of them are drawn again, by others.
        """

    def finished(self, epochs: int) -> bool:
        """
        Returns whether so many epochs are used up: the condition of a training loop.
        """

    @property
    def epoch(self) -> int:
        """The epoch of the latest draw, from 0."""

    @property
    def done_in_epoch(self) -> int:
        """The samples of this epoch that were used so far."""

    @property
    def global_batch(self) -> int:
        """The samples in the open draw over all members."""

    @property
    def members(self) -> list[int]: ...

    def __len__(self) -> int: ...

class Schedule:
    """
    Base learning rate as a function of the samples seen in the whole training.
    """

    @staticmethod
    def constant(base: float) -> Schedule:
        """Always ``base``."""

    @staticmethod
    def step(base: float, milestones: Sequence[float], factor: float = 0.1) -> Schedule:
        """
        ``base``, times ``factor`` from each of the ``milestones`` (samples) on.
        """

    @staticmethod
    def cosine(base: float, samples: float, last: float = 0.0) -> Schedule:
        """From ``base`` along half a cosine to ``last`` at ``samples``."""

    @staticmethod
    def polynomial(base: float, samples: float, power: float = 1.0, last: float = 0.0) -> Schedule:
        """
        From ``base`` to ``last`` at ``samples``; a straight line with ``power`` 1.
        """

    def with_warm_up(self, samples: float, first: float) -> Schedule:
        """
        The same, but rising linearly from ``first`` over the first ``samples``.
        """

    def rate(self, samples: float) -> float:
        """The base rate after ``samples`` samples."""

class Rate:
    """The rate of one step of an optimizer."""

    def __init__(self, base: float, gamma: float = 1.0, momentum_scale: float = 1.0) -> None: ...

    @property
    def base(self) -> float:
        """The schedule's rate, which suits the reference batch."""

    @property
    def gamma(self) -> float:
        """The factor that suits the batch of this step."""

    @property
    def momentum_scale(self) -> float:
        """What the momentum is multiplied by before the step."""

    @property
    def value(self) -> float:
        """The rate itself: base times gamma."""

    def __repr__(self) -> str: ...

class LearningRate:
    """
    The learning rate of a training whose workers come and go: it follows the global batch, and takes
    growth in small steps (Dynamic SGD, Lin et al. 2019). Put it into the State.
    """

    def __init__(self, schedule: Schedule, batch_reference: float, rule: str = 'linear', policy: str | None = None, ramp_steps: int | None = None, momentum: float = 0.9) -> None:
        """
        ``batch_reference``: samples per step for which the schedule was chosen. ``rule``: "linear" "sqrt"
        or "adascale". ``policy``: "ramp", "immediate", "rescale", "reset" or "none"; by default that of the
        option resize_policy, after ``init``.
        """

    def step(self, batch: float, samples: float) -> Rate:
        """
        Call once per step, before the update, with the global batch that the rate should suit and
        the samples that were really used; the same on all members. Returns the Rate.
        """

    def observe(self, total: Sequence[float] | NDArray[numpy.float64], gradient_sum: Sequence[Tensor]) -> None:
        """
        The rule "adascale" asks for it before each ``step``: the sums over all workers of
        GradientNoise.moments and of the gradients, made by one grouped_allreduce.
        """

    def set_schedule(self, schedule: Schedule) -> None:
        """
        Goes on by another schedule, from where ``progress`` is; at the same step on all members.
        """

    @property
    def rule(self) -> str:
        """How the rate follows the batch."""

    @property
    def policy(self) -> str:
        """When the rate follows the batch."""

    @property
    def latest(self) -> Rate:
        """The Rate of the latest step."""

    @property
    def progress(self) -> float:
        """The samples used so far."""

    def save(self) -> bytes:
        """All of it as bytes."""

    def load(self, bytes: bytes) -> None:
        """Reverse of ``save``."""

class FiniteCheck:
    """
    Keeps NaN and Inf in gradients from the weights, on all ranks alike, as the option
    ``non_finite`` of ``init`` says: "error" raises a NotFiniteError that names rank and gradient, "skip"
    leaves the step out, "pass" looks at nothing.

        check = elastic.FiniteCheck({"weight": weight_gradient, "bias": bias_gradient})
        ...
        check.begin_step()
        check.before_sum()
        elastic.grouped_allreduce([weight_gradient, bias_gradient])   # in place
        if check.after_sum():
            ...                                                       # use the sums

    For sums and averages, in host memory. All members make the same calls.
    """

    def __init__(self, gradients: dict[str, Any], context: Context | None = None) -> None:
        """
        Looks at ``gradients``, a dict of arrays or tensors by name, which are summed in place. Uses the
        default context unless another is given.

        Raises:
            InvalidArgumentError: a gradient is not contiguous, or is not in host memory.
            NotInitializedError: before ``init``.
        """

    def begin_step(self, gradients: dict[str, Any] | None = None) -> None:
        """
        Begins a step, and forgets what ``before_sum`` saw in one whose sum has failed. ``gradients``:
        those to look at from now on, where they are new arrays in each step.
        """

    def before_sum(self) -> None:
        """
        Looks at what this worker contributes, so that an error can name its rank. Call it after each
        part of a gradient that is computed in parts.
        """

    def after_sum(self) -> bool:
        """
        Looks at the sums. Returns whether they may be used; if not, the step is to be skipped.

        Raises:
            NotFiniteError: under "error", on all ranks alike. ``peer`` is the rank that contributed the
                value, or -1 if the contributions were finite and their sum is not.
        """

class Traffic:
    """
    Bytes of one call of a GradientCompressor, or of all, and what was not sent.
    """

    @property
    def tensors(self) -> int:
        """Bytes of the tensors."""

    @property
    def encoded(self) -> int:
        """Bytes that this worker's contribution was encoded in."""

    @property
    def sent(self) -> int:
        """Bytes that this worker sent over links."""

    @property
    def sent_uncompressed(self) -> int:
        """Bytes that an allreduce without compression sends."""

    @property
    def non_finite(self) -> int:
        """Elements of results that are NaN or Inf."""

    @property
    def residual_norm(self) -> float:
        """Euclidean norm of what this worker keeps for the next call."""

    def __repr__(self) -> str: ...

class GradientCompressor:
    """
    Allreduces gradients in fewer bytes, and keeps what was not sent for the next call (error
    feedback).

        compressor = elastic.GradientCompressor("int8")
        contributors = compressor.grouped_allreduce({"weights": gradient})   # in place

    Results are bit-identical on all ranks. After the death of a member a call returns the sum over
    exactly its contributors; when it raises, tensors and residuals are as they were. Residuals belong to
    this worker: they are no part of the State, and a joiner's are zero.
    """

    def __init__(self, compression: str | None = None, context: Context | None = None) -> None:
        """
        ``compression``: "none", "f16", "f16:SCALE", "bf16", "int8", "int8:BLOCK", "two_bit",
        "two_bit:THRESHOLD", "top_k:RATIO" or "top_k:RATIO:MOMENTUM:WARM_UP_STEPS"; by default the option
        ``compression`` of ``init``. The same on all members.

        Raises:
            InvalidArgumentError: no such compression, or a parameter out of range.
        """

    def allreduce(self, name: str, tensor: Tensor, op: ReduceOp = ReduceOp.SUM) -> Contributors:
        """
        Sums or averages ``tensor``, of float32, over all members in place. Its residual is kept under
        ``name``. Returns the Contributors.

        Raises:
            InvalidArgumentError: another element type, op or size than under this name before.
            MismatchError: members give different names, sizes or ops; on all of them.
        """

    def grouped_allreduce(self, tensors: dict[str, Any], op: ReduceOp = ReduceOp.SUM, whole: Sequence[str] = []) -> Contributors:
        """
        The same for a dict of tensors by name, as one unit: after a failure either all of them hold
        sums over the same contributors, or none was changed. Those named in ``whole`` are sent uncompressed,
        such as losses and counts.
        """

    def send_whole(self, whole: bool = True) -> None:
        """
        Sends everything, residuals included, from the next call on: for a worker that is to leave.
        """

    def rescale(self, before: tuple[float, float], now: tuple[float, float]) -> None:
        """
        Call when the rate or the batch has changed: both are pairs of (rate, what sums are divided by).
        """

    def reset(self) -> None:
        """Forgets all residuals: for a worker that comes back after an eviction."""

    def begin_at(self, step: int) -> None:
        """Counts calls from ``step``, for joiners, which need no warm-up."""

    def residual(self, name: str) -> NDArray[numpy.float32]:
        """
        A copy of what was not sent of the tensor of this name; empty before its first call.
        """

    @property
    def kind(self) -> str:
        """"none", "f16", "bf16", "int8", "two_bit" or "top_k"."""

    @property
    def latest(self) -> Traffic:
        """The Traffic of the latest call that returned."""

    @property
    def total(self) -> Traffic:
        """The Traffic of all calls that returned."""

class RandomStream:
    """
    Random numbers (Philox4x32-10) that are a function of their key and of how many were taken before:
    the same on whichever worker computes a batch, as often as it is computed.
    """

    def __init__(self, seed: int, epoch: int = 0, step: int = 0, virtual_worker: int = 0) -> None: ...

    def bits(self) -> int:
        """Draws 32 random bits."""

    def uniform(self) -> float:
        """A number uniform in [0, 1)."""

    def below(self, bound: int) -> int:
        """A number uniform among the whole numbers below ``bound``."""

    def generator(self) -> numpy.random.Generator:
        """
        A generator of NumPy that is seeded by the next numbers of this stream.
        """

class VirtualBatch:
    """A part of a step's batch, for this worker."""

    @property
    def virtual_worker(self) -> int:
        """Its number in the step; under "per_worker" this worker's rank."""

    @property
    def samples(self) -> NDArray[numpy.int64]:
        """The indices of its samples."""

    @property
    def random(self) -> RandomStream:
        """Random numbers that belong to this part, whichever worker computes it."""

class BatchSum:
    """What is in the sum of a step; alike on all workers."""

    @property
    def contributors(self) -> Contributors:
        """The workers after the step."""

    @property
    def samples(self) -> int:
        """The samples in the sum."""

    @property
    def full_batch(self) -> int:
        """What it would be were this not an epoch's end: for the learning rate."""

    def __repr__(self) -> str: ...

class SampleAverage:
    """What is in an average_by_samples."""

    @property
    def contributors(self) -> Contributors:
        """The workers that are in it."""

    @property
    def samples(self) -> int:
        """The samples of all of them."""

    def __repr__(self) -> str: ...

class GlobalBatch:
    """
    Sums the gradients of a step's batch over all workers. It draws from the sampler and commits to
    it. Put it into the State.

        batches = elastic.GlobalBatch(sampler, 64, policy="fixed_total", virtual_workers=8)

        def add_gradients(part):
            gradient[:] += ...                    # over data[part.samples]; sum() began with zeros

        total = batches.sum([gradient], add_gradients)
        weights -= rate * gradient / total.samples

    Policies: "per_worker", a batch for each worker; "fixed_total", one batch for all, in equal parts for
    ``virtual_workers``, whose gradients the survivors compute again if a member dies within the step;
    "reproducible", the same with sums that have the same bits on however many workers.
    """

    def __init__(self, sampler: Sampler, batch: int, policy: str = 'per_worker', virtual_workers: int = 1, context: Context | None = None) -> None:
        """
        ``batch``: the samples of a step, of each worker under "per_worker", in all otherwise.

        Raises:
            InvalidArgumentError: an option is out of range, or the batch does not divide among the
                virtual workers.
        """

    def sum(self, tensors: Sequence[Tensor], add_gradients: Callable[[VirtualBatch], object]) -> BatchSum:
        """
        Makes a step's sums in ``tensors``, and returns what is in them. All members call it alike.

        ``add_gradients(part)`` adds to the tensors, which ``sum`` sets to zero before, the sums over the
        part's samples. It may be called for the same part again, and calls no collective; its exceptions
        come out of ``sum``.
        """

    @property
    def policy(self) -> str:
        """The policy; after a join that of the job."""

    @property
    def batch(self) -> int:
        """The samples of a step."""

    @property
    def virtual_workers(self) -> int:
        """The parts of a step."""

    def save(self) -> bytes:
        """The options as bytes, for the State."""

    def load(self, bytes: bytes) -> None:
        """Reverse of ``save``."""

def average_by_samples(sums: Sequence[Tensor], samples: int) -> SampleAverage:
    """
    Averages gradients over samples, for workers with unequal batches: the arrays hold sums over
    ``samples`` samples of this worker, and afterwards the sum over all divided by the true number of
    samples. A worker without data calls it with zeros and 0. Returns a SampleAverage.
    """

class MomentumSgd:
    """
    Stochastic gradient descent with momentum for arrays of float32. Equal inputs give equal bits on
    every worker. Put it into the State, beside the parameters.
    """

    def __init__(self, parameters: Sequence[Tensor], momentum: float = 0.9, nesterov: bool = False, weight_decay: float = 0.0, decoupled: bool = False) -> None:
        """
        ``parameters``: a list of arrays, which are updated in place. ``decoupled``: weight decay
        multiplies the weights instead of being added to the gradient.
        """

    def step(self, gradient_sum: Sequence[Tensor], batch: float, rate: Rate | float) -> None:
        """
        One step. ``gradient_sum``: arrays of float32 like the parameters, summed over samples, which
        are divided by ``batch``. ``rate``: what LearningRate.step returned, or a number.

        Raises:
            InvalidArgumentError: changing nothing, for arrays of other sizes, or a batch or rate out of
                range.
        """

    @property
    def momentum(self) -> NDArray[numpy.float32]:
        """A copy of the momentum, the tensors one after another."""

class AdamW:
    """
    Adam with decoupled weight decay for arrays of float32. The rate follows the square root of the
    batch, so give LearningRate the linear rule. Put it into the State, beside the parameters.
    """

    def __init__(self, parameters: Sequence[Tensor], beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, weight_decay: float = 0.01, scale_betas: bool = False) -> None:
        """
        ``parameters``: a list of arrays, which are updated in place. ``scale_betas``: the betas and
        epsilon, which suit the reference batch, follow the batch as well.
        """

    def step(self, gradient_sum: Sequence[Tensor], batch: float, rate: Rate | float) -> None:
        """
        One step. ``gradient_sum``: arrays of float32 like the parameters, summed over samples, which
        are divided by ``batch``. ``rate``: what LearningRate.step returned, or a number.

        Raises:
            InvalidArgumentError: changing nothing, for arrays of other sizes, or a batch or rate out of
                range.
        """

    @property
    def momentum(self) -> NDArray[numpy.float32]:
        """A copy of the momentum, the tensors one after another."""

    @property
    def variance(self) -> NDArray[numpy.float32]:
        """A copy of the mean squares, the tensors one after another."""

class GradientNoise:
    """
    How noisy the gradient is, estimated from how much the gradients of a step's workers differ
    (AdaScale, Johnson et al. 2020). Put it into the State.
    """

    def __init__(self) -> None: ...

    @staticmethod
    def moments(gradient_sum: Sequence[Tensor], samples: float) -> NDArray[numpy.float64]:
        """
        What this worker adds to the group that is summed: an array of its samples, 1 if it has any, and
        the squared norm of ``gradient_sum`` divided by samples.
        """

    def observe(self, total: Sequence[float] | NDArray[numpy.float64], gradient_sum: Sequence[Tensor], batch_reference: float) -> None:
        """
        Takes in one step: the sums over all workers of their moments and of their gradients.
        """

    def gain(self, scale: float, batch_reference: float) -> float:
        """
        How many steps of the reference batch one of ``scale`` times its size replaces: from 1, without
        noise, to ``scale``.
        """

    @property
    def variance(self) -> float:
        """The variance of the gradient of one sample."""

    @property
    def square(self) -> float:
        """The squared norm of the true gradient."""

    @property
    def estimates(self) -> int:
        """The steps in the averages."""

    def save(self) -> bytes:
        """The averages as bytes, for the State."""

    def load(self, bytes: bytes) -> None:
        """Reverse of ``save``."""

class StepTime:
    """
    Where the time of a step, from one commit to the next, went; in seconds.
    """

    @property
    def data(self) -> float:
        """Within ``loading_data()``."""

    @property
    def compute(self) -> float:
        """All the rest."""

    @property
    def communication(self) -> float:
        """Blocked in collectives and in Work.wait."""

    @property
    def view_change(self) -> float:
        """Blocked while members came and went."""

    @property
    def total(self) -> float:
        """Of the whole step."""

    @property
    def own(self) -> float:
        """
        Of this worker's own work, for which others may have waited: data and compute.
        """

    def __repr__(self) -> str: ...

class StepTimes:
    """The steps that this worker has made in ``run``."""

    @property
    def steps(self) -> int:
        """Their number."""

    @property
    def latest(self) -> StepTime:
        """The last one that was committed."""

    @property
    def sum(self) -> StepTime:
        """Of all of them."""

    @property
    def compared_commit(self) -> int:
        """
        The latest step in which the ranks told each other their times; 0: none yet.
        """

    @property
    def by_rank(self) -> list[StepTime]:
        """The times of that step, by rank."""

    @property
    def slowest(self) -> int:
        """The rank with the longest ``own`` time, or -1."""

    def __repr__(self) -> str: ...

class ViewChange:
    """
    Where the time of a change of the members went. Moments are those of time.monotonic(), in order.
    """

    @property
    def generation(self) -> int:
        """Of the view that it led to; 0: there was no change yet."""

    @property
    def cause(self) -> str:
        """For people: the workers that came and left."""

    @property
    def noticed(self) -> float:
        """A broken link, the server's request, or the step boundary."""

    @property
    def reported(self) -> float:
        """
        The server was told that nothing of the old view happens here any more.
        """

    @property
    def decided(self) -> float:
        """The new view came."""

    @property
    def linked(self) -> float:
        """There was a link to every other member."""

    @property
    def installed(self) -> float:
        """Operations go on."""

    @property
    def resumed(self) -> float:
        """The first of them was complete here; 0 until then."""

    def __repr__(self) -> str: ...

class Tuning:
    """The measured links of the members, and the algorithms chosen."""

    class Link:
        """The slowest link of a kind; zeros if there is none."""

        @property
        def latency_us(self) -> float:
            """Of a message of a few bytes."""

        @property
        def gigabytes_per_second(self) -> float:
            """Powers of ten, each way."""

        def __repr__(self) -> str: ...

    class Choice:
        """The algorithm for tensors of up to a size."""

        @property
        def up_to_bytes(self) -> int:
            """Of the tensor."""

        @property
        def algorithm(self) -> str:
            """Its name."""

        def __repr__(self) -> str: ...

    @property
    def generation(self) -> int:
        """Of the view; 0: there was no operation yet."""

    @property
    def inside_hosts(self) -> Tuning.Link:
        """Between two ranks on one host."""

    @property
    def between_hosts(self) -> Tuning.Link:
        """Between two ranks on different hosts."""

    @property
    def flows_opened(self) -> int:
        """TCP connections of a link between hosts."""

    @property
    def flows_used(self) -> int:
        """How many of them carry data."""

    @property
    def allreduce(self) -> list[Tuning.Choice]:
        """The choices, by ascending size."""

    @property
    def segment_bytes(self) -> int:
        """Pieces of large tensors."""

    def __repr__(self) -> str: ...

class LoadingData:
    """What ``loading_data`` returns."""

    def __enter__(self) -> None: ...

    def __exit__(self, *raised: object) -> None: ...

def loading_data() -> LoadingData:
    """
    Counts a block as StepTime.data: ``with elastic.loading_data(): batch = next(reader)``.
    """

def step_times() -> StepTimes:
    """Where the time of this worker's steps went."""

def last_view_change() -> ViewChange:
    """The latest change of the members that this worker went through."""

def start_timeline(path: str) -> None:
    """
    Writes a timeline of this worker from now on, for Perfetto: ``trace.json`` becomes ``trace.<worker>.json``.
    """

def stop_timeline() -> None:
    """Completes the timeline's file. Nothing without one."""

def timeline_file() -> str:
    """The file that the timeline is written to; empty without one."""

def tuning() -> Tuning:
    """How operations are done in the present view."""

class StepGroup:
    """
    The gradients of a training step as one unit: named allreduces that are submitted as the gradients
    become ready, and committed together. If a member dies within the step, the results of all tensors
    are over the same contributors.

    One object serves step after step. Tensors are in host memory. An input that is summed in place is
    kept as a copy until ``wait``.
    """

    def __init__(self, context: Context | None = None) -> None: ...

    def allreduce(self, name: str, tensor: Tensor, op: ReduceOp = ReduceOp.SUM, *, out: Tensor | None = None) -> None:
        """
        Adds a tensor to the step, and starts its allreduce: in place, or from ``tensor`` to ``out``, with
        which ``tensor`` stays as it is.

        Raises:
            InvalidArgumentError: the name is in this step already.
        """

    def wait(self) -> Contributors:
        """
        Ends the step: waits until all its tensors have results over the same contributors, and returns
        these.

        Raises:
            MismatchError: the ranks differ about a tensor; those in place are as they were before.
        """

    @property
    def open(self) -> int:
        """The tensors of this step without a wait."""

    @property
    def kept_bytes(self) -> int:
        """The bytes of the inputs that are kept as copies."""

class RunOutcome(enum.Enum):
    """How ``run`` came to its end."""

    FINISHED = 0
    """The body returned: the training is done."""

    REMOVED = 1
    """This worker was asked to leave; the others go on."""

    STOPPED = 2
    """The job was asked to stop."""

    LEFT_OUT = 3
    """
    The job was done, or stopped, without this worker; its state is not that of the training's end.
    """

class _State:
    def __init__(self) -> None: ...

    def add_tensor(self, name: str, tensor: Tensor) -> None: ...

    def add_object(self, name: str, save: object, load: object, set_members: object | None = None) -> None: ...

    def add_sampler(self, name: str, sampler: object) -> None: ...

    def add_learning_rate(self, name: str, learning_rate: object) -> None: ...

    def add_momentum_sgd(self, name: str, optimizer: object) -> None: ...

    def add_adam_w(self, name: str, optimizer: object) -> None: ...

    def commit(self) -> None: ...

    def commits(self) -> int: ...

    def save_to(self, arg: bytes, /) -> None: ...

    def load_from(self, arg: bytes, /) -> bool: ...

def _run(state: _State, body: object) -> RunOutcome: ...
