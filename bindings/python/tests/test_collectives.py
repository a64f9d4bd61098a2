"""Collectives on NumPy arrays and on what has the buffer protocol."""

from __future__ import annotations

import array
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import elastic
from conftest import Job


def element_types() -> None:
    elastic.init()
    expected = sum(range(1, elastic.size() + 1))
    for dtype in ("f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
        tensor = np.full((3, 5), elastic.rank() + 1, dtype)
        contributors = elastic.allreduce(tensor)
        assert len(contributors) == elastic.size()
        assert (tensor == expected).all(), (dtype, tensor)
    flags = np.array([True, False, elastic.rank() == 0])
    elastic.allreduce(flags)
    assert flags.tolist() == [True, False, True]
    elastic.shutdown()


def test_all_element_types(job: Job) -> None:
    job(3, element_types)


def operations() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    for op, expected in (
        (elastic.SUM, n * (n + 1) / 2),
        (elastic.AVERAGE, (n + 1) / 2),
        (elastic.MIN, 1),
        (elastic.MAX, n),
        (elastic.PRODUCT, float(np.prod(range(1, n + 1)))),
    ):
        tensor = np.full(1000, rank + 1, np.float64)
        result = np.zeros_like(tensor)
        elastic.allreduce(tensor, op, out=result)
        assert (result == expected).all() and (tensor == rank + 1).all()
    assert elastic.allreduce(rank + 1) == n * (n + 1) // 2
    assert elastic.allreduce(0.5) == n / 2
    assert elastic.allreduce(rank == 1, elastic.MAX) is True
    numbers = array.array("d", [rank, 1])
    elastic.allreduce(numbers)
    assert list(numbers) == [n * (n - 1) / 2, n]
    elastic.shutdown()


def test_operations_and_numbers(job: Job) -> None:
    job(2, operations)


def bits_and_truth() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    masks = [np.arange(100, dtype=np.int32) * (each + 3) for each in range(n)]
    bitwise: list[tuple[elastic.ReduceOp, Any]] = [
        (elastic.BIT_AND, np.bitwise_and),
        (elastic.BIT_OR, np.bitwise_or),
        (elastic.BIT_XOR, np.bitwise_xor),
    ]
    for op, function in bitwise:
        data = masks[rank].copy()
        elastic.allreduce(data, op)
        assert (data == function.reduce(masks)).all()
    values = [np.array([0.0, -0.0, 2.5, each]) for each in range(n)]
    logical: list[tuple[elastic.ReduceOp, Any]] = [
        (elastic.LOGICAL_AND, np.logical_and),
        (elastic.LOGICAL_OR, np.logical_or),
        (elastic.LOGICAL_XOR, np.logical_xor),
    ]
    for op, function in logical:
        data = values[rank].copy()
        elastic.allreduce(data, op)
        assert (data == function.reduce(values)).all(), (op, data)
    with pytest.raises(elastic.InvalidArgumentError, match="f64 has no bit or"):
        elastic.allreduce(values[rank], elastic.BIT_OR)
    elastic.shutdown()


def test_bitwise_and_logical_operations(job: Job) -> None:
    job(3, bits_and_truth)
    job(1, bits_and_truth)


def scaled() -> None:
    elastic.init()
    n = elastic.size()
    for size in (3, 100_000):
        data, out = np.full(size, 3.0, np.float32), np.zeros(size, np.float32)
        elastic.allreduce(data, out=out, prescale=0.5, postscale=4)
        assert (out == n * 6).all() and (data == 3).all()
        elastic.allreduce(data, elastic.AVERAGE, prescale=1 / 3)
        assert (data == 1).all()
        elastic.grouped_allreduce([data, out], prescale=2)
        assert (data == 2 * n).all() and (out == 12 * n * n).all()
        elastic.allreduce_async("scaled", data, postscale=0.25).wait()
        assert (data == n * n / 2).all()
    with pytest.raises(elastic.InvalidArgumentError, match="i64 is not scaled"):
        elastic.allreduce(np.arange(3), prescale=2)
    elastic.shutdown()


def test_scales(job: Job) -> None:
    job(2, scaled)


def other_collectives() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    first, second = np.ones(10), np.full(7, 2, np.int32)
    elastic.grouped_allreduce([first, second])
    assert (first == n).all() and (second == 2 * n).all()
    data = np.full(4, rank)
    elastic.broadcast(data, 1)
    assert (data == 1).all()
    members = elastic.members()
    assert members.workers[rank] == elastic.worker_id() and len(members) == n
    data = np.array(rank)
    assert elastic.broadcast_from(data, members.workers[2]).workers == members.workers and data == 2
    with pytest.raises(elastic.RootLostError, match="is no member; choose a root of the present view"):
        elastic.broadcast_from(data, max(members.workers) - 1)
    gathered = elastic.allgather(np.full((rank + 1, 2), rank, np.float32))
    assert gathered.counts == list(range(1, n + 1))
    assert gathered.values.shape == (n * (n + 1) // 2, 2) and gathered.values.dtype == np.float32
    assert gathered.values[:, 0].tolist() == [r for r in range(n) for _ in range(r + 1)]
    room = np.zeros(100, np.int64)
    assert elastic.allgather(np.array([rank]), room).values.tolist() == list(range(n))
    part = elastic.reduce_scatter(np.arange(10.0))
    assert (part.values == n * np.arange(part.offset, part.offset + len(part.values))).all()
    works = [elastic.allreduce_async(name, np.ones(3)) for name in ("b", "a")]
    assert [len(work.wait()) for work in works] == [n, n]
    assert len(elastic.barrier()) == n
    elastic.shutdown()


def test_other_collectives(job: Job) -> None:
    job(3, other_collectives)


def forgotten_tensors() -> None:
    """A Work and its tensor may be forgotten before the operation is complete."""
    elastic.init()
    for step in range(200):
        elastic.allreduce_async(f"gradient{step}", np.ones(100_000, np.float32))
    total = np.ones(1)
    elastic.allreduce(total)
    assert elastic.allreduce_async("last", total).wait_for(30)
    # No tensor is on a device, so no stream is looked at.
    work = elastic.allreduce_async("by stream", total)
    assert len(work.wait(stream=0)) == elastic.size()
    with pytest.raises(elastic.InvalidArgumentError, match="give a CUDA stream"):
        work.wait(stream="default")
    elastic.shutdown()


def test_tensors_live_until_their_work_is_complete(job: Job) -> None:
    job(2, forgotten_tensors)


def wrong_operations() -> None:
    elastic.init()
    x = np.ones(3, np.float32)
    compressor = elastic.GradientCompressor("int8")
    calls: dict[str, Callable[[Any], object]] = {
        "allreduce": lambda op: elastic.allreduce(x, op),
        "grouped_allreduce": lambda op: elastic.grouped_allreduce([x], op),
        "allreduce_async": lambda op: elastic.allreduce_async("x", x, op),
        "grouped_allreduce_async": lambda op: elastic.grouped_allreduce_async("x", [x], op),
        "reduce_scatter": lambda op: elastic.reduce_scatter(x, op),
        "GradientCompressor.allreduce": lambda op: compressor.allreduce("x", x, op),
        "GradientCompressor.grouped_allreduce": lambda op: compressor.grouped_allreduce({"x": x}, op),
    }
    for name, call in calls.items():
        for op in ("avg", 1):
            text = re.escape(f"{name}: op is {op!r}; give elastic.SUM, AVERAGE")
            with pytest.raises(elastic.InvalidArgumentError, match=f"^{text}"):
                call(op)
    assert len(elastic.allreduce(x, elastic.AVERAGE)) == 2
    elastic.shutdown()


def test_an_operation_is_a_reduce_op(job: Job) -> None:
    job(2, wrong_operations)


def wrong_tensors() -> None:
    elastic.init()
    fixed = np.ones(3)
    fixed.flags.writeable = False
    for tensor, text in (
        (np.ones((4, 4))[:, 1], "is not contiguous"),
        (fixed, "is read-only"),
        (b"12345678", "is read-only"),
        (np.ones(3, np.complex64), "complex64"),
        (np.ones(3, ">f4"), "byte order"),
        (np.array(["a", "b"]), "which elastic has not"),
        (np.array([{}]), "which elastic has not"),
    ):
        with pytest.raises(elastic.InvalidArgumentError, match=text):
            elastic.allreduce(tensor)
    wrong: list[Any] = [[1, 2, 3], None, "abc", object()]
    for value in wrong:
        with pytest.raises(TypeError, match="give an array of NumPy"):
            elastic.allreduce(value)
    with pytest.raises(elastic.InvalidArgumentError, match="must be alike"):
        elastic.allreduce(np.ones(3), out=np.ones(4))
    with pytest.raises(elastic.InvalidArgumentError, match=r"tensors\[1\]"):
        elastic.grouped_allreduce([np.ones(3), fixed])
    if elastic.rank() == 0:
        with pytest.raises(elastic.MismatchError):
            elastic.allreduce(np.ones(3))
    else:
        with pytest.raises(elastic.MismatchError):
            elastic.allreduce(np.ones(4))
    assert elastic.allreduce(1) == elastic.size()  # the job goes on
    elastic.shutdown()


def test_wrong_tensors_are_errors_that_say_what_to_do(job: Job) -> None:
    job(2, wrong_tensors)


def test_before_init_is_an_error() -> None:
    with pytest.raises(elastic.NotInitializedError, match=r"call elastic\.init first"):
        elastic.rank()
    with pytest.raises(elastic.InvalidArgumentError, match="bucket_bytes"):
        elastic.init(bucket_byte="16M")


class OnlyDLPack:
    """An array that has nothing but DLPack."""

    def __init__(self, array: np.ndarray[Any, np.dtype[Any]]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def memory_of_all_kinds() -> None:
    elastic.init()
    size = elastic.size()
    doubles = array.array("d", [1, 2])
    elastic.allreduce(doubles)
    assert doubles.tolist() == [size, 2 * size]
    elastic.allreduce(memoryview(doubles)[1:])
    assert doubles.tolist() == [size, 2 * size * size]
    octets = bytearray(b"\x01\x02\x03")
    elastic.allreduce(octets)
    assert octets == bytes([size, 2 * size, 3 * size])
    numbers = np.ones(3, np.int16)
    elastic.grouped_allreduce([OnlyDLPack(numbers), octets])
    assert (numbers == size).all()
    gathered = elastic.allgather(array.array("f", [elastic.rank()])).values
    assert gathered.tolist() == list(range(size))
    elastic.allreduce(b"\x01\x02", out=octets[:2])
    for constant in (b"abc", memoryview(b"abc"), np.frombuffer(b"abc", np.uint8)):
        with pytest.raises(elastic.InvalidArgumentError, match="read-only"):
            elastic.allreduce(constant)
    with pytest.raises(elastic.InvalidArgumentError, match="not contiguous"):
        elastic.allreduce(memoryview(octets)[::2])
    with pytest.raises(elastic.InvalidArgumentError, match="not contiguous"):
        elastic.allreduce(OnlyDLPack(np.ones((2, 2)).T))
    elastic.shutdown()


def test_buffers_and_dlpack(job: Job) -> None:
    job(2, memory_of_all_kinds)


def rows_that_differ() -> None:
    elastic.init()
    first = elastic.rank() == 0
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((2, 1), (2, 2)),
        ((4, 1), (2, 2)),
        ((2, 2, 3), (2, 3, 2)),
        ((4,), (2, 2)),
    ]
    for one, other in shapes:
        block = np.zeros(one if first else other)
        for out in (None, np.zeros(100)):
            with pytest.raises(elastic.MismatchError, match="other shapes"):
                elastic.allgather(block, out)
    rows = elastic.rank() + 1
    gathered = elastic.allgather(np.full((rows, 2, 3), rows))
    assert gathered.counts == [1, 2] and gathered.values.shape == (3, 2, 3)
    elastic.shutdown()


def test_an_allgather_of_unlike_rows_is_an_error_on_all(job: Job) -> None:
    job(2, rows_that_differ)


def arrays_of_ctypes() -> None:
    import ctypes

    elastic.init()
    size = elastic.size()
    numbers = (ctypes.c_int * 3)(1, 2, 3)
    elastic.allreduce(numbers)
    assert list(numbers) == [size, 2 * size, 3 * size]
    table = (ctypes.c_double * 2 * 3)()
    table[2][1] = 1
    elastic.grouped_allreduce([table, numbers])
    assert table[2][1] == size
    number = ctypes.c_float(elastic.rank() + 1)
    elastic.broadcast(number, 0)
    assert number.value == 1
    assert elastic.allgather(table).values.shape == (3 * size, 2)
    elastic.State(table=table)
    swapped = (ctypes.c_double.__ctype_be__ * 3)()
    for wrong in (swapped, (ctypes.c_char_p * 2)()):
        with pytest.raises((elastic.InvalidArgumentError, TypeError)):
            elastic.allreduce(wrong)
    elastic.shutdown()


def test_arrays_of_ctypes(job: Job) -> None:
    job(2, arrays_of_ctypes)


def empty_arrays() -> None:
    elastic.init()
    for shape in ((0,), (0, 2), (2, 0), (3, 0, 2)):
        nothing = np.zeros(shape)
        elastic.allreduce(nothing)
        elastic.broadcast(nothing, 0)
        elastic.State(nothing=nothing)
        gathered = elastic.allgather(nothing)
        assert gathered.values.shape == (0, *shape[1:])
    gathered = elastic.allgather(np.ones((elastic.rank(), 2)))  # that of rank 0 is empty
    assert gathered.counts == [0, 1] and gathered.values.shape == (1, 2)
    elastic.shutdown()


def test_empty_arrays_of_every_shape(job: Job) -> None:
    job(2, empty_arrays)


def test_messages_name_what_python_has() -> None:
    with pytest.raises(elastic.InvalidArgumentError, match="docs/environment.md lists all"):
        elastic.init(foo=1)
    with pytest.raises(elastic.InvalidArgumentError, match=r"backend is '\\ud800'"):
        elastic.init(backend="\ud800")
    with pytest.raises(elastic.InvalidArgumentError, match="State.add: entry 'w' is not contiguous.*keep"):
        elastic.State(w=np.ones((4, 4))[:, 1])
