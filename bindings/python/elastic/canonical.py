"""Values as bytes, equal values as equal bytes: what pickles do not give.

Members compare the hashes of their states, so that a replica that has drifted apart is found. A form
for that has no memory addresses, no order of insertion and no version of a library in it.

The form: the length of a JSON text (8 bytes, little endian), the text, and the bytes of all arrays.
"""

from __future__ import annotations

import collections
import json
import math
import struct
import sys
from typing import Any

import numpy as np

from elastic.errors import InvalidArgumentError

#: How deep lists, tuples and dicts may lie in one another. One that holds itself has no end.
DEEPEST = 100

_DICTS = {
    "dict": dict,
    "OrderedDict": collections.OrderedDict,
    "Counter": collections.Counter,
}


def dumps(value: Any, name: str = "value") -> bytes:
    """The bytes of ``value``: None, bool, int, float, str, bytes, lists, tuples and dicts of them,
    arrays of NumPy and tensors of PyTorch.

    Raises:
        InvalidArgumentError: a part is of another type, or too deep; the message has its place.
    """
    blocks: list[bytes] = []
    text = json.dumps(_encode(value, name, blocks), separators=(",", ":")).encode()
    return b"".join((struct.pack("<Q", len(text)), text, *blocks))


def loads(data: bytes) -> Any:
    """The reverse of ``dumps``.

    Raises:
        InvalidArgumentError: the bytes are not from ``dumps``.
    """
    try:
        (length,) = struct.unpack_from("<Q", data)
        tree = json.loads(data[8 : 8 + length])
        value, end = _decode(tree, memoryview(data), 8 + length)
    except (struct.error, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise InvalidArgumentError(f"these bytes are no saved value: {error}") from error
    if end != len(data):
        raise InvalidArgumentError(f"these bytes are no saved value: {len(data) - end} are left over")
    return value


def _torch() -> Any:
    return sys.modules.get("torch")


def _encode(value: Any, name: str, blocks: list[bytes], depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise InvalidArgumentError(
            f"{name[: name.index('[')]} has lists or dicts in one another, more than {DEEPEST} deep, "
            "or one that holds itself; keep a flat list in the State"
        )
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if abs(value) < 2**53 else {"int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is list:
        return [
            _encode(item, f"{name}[{at}]", blocks, depth + 1) for at, item in enumerate(value)
        ]
    if kind is tuple:
        return {"tuple": _encode(list(value), name, blocks, depth)}
    if kind is bytes:
        blocks.append(value)
        return {"bytes": len(value)}
    if isinstance(value, dict) and kind.__name__ in (*_DICTS, "defaultdict"):
        return _encode_dict(value, kind.__name__, name, blocks, depth)
    if isinstance(value, np.generic):
        return {"number": _encode_array(np.asarray(value), name, blocks)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, name, blocks)
    torch = _torch()
    if torch is not None and isinstance(value, torch.Tensor):
        return _encode_tensor(value, name, blocks)
    raise InvalidArgumentError(
        f"{name} is a {kind.__module__}.{kind.__qualname__}, which has no canonical form: keep "
        "numbers, texts, lists, tuples, dicts and arrays of them in the State, or give the object "
        "save() -> bytes and load(bytes)"
    )


def _encode_dict(value: Any, kind: str, name: str, blocks: list[bytes], depth: int) -> Any:
    if kind == "defaultdict":  # its factory has no form; what it holds has
        kind = "dict"
    keys = list(value)
    for key in keys:
        if type(key) not in (str, int, float, bool, type(None)):
            raise InvalidArgumentError(
                f"{name} has the key {key!r} of type {type(key).__name__}; keys are texts or numbers"
            )
    if kind != "OrderedDict":  # there the order is a part of the value
        keys.sort(key=lambda key: (type(key).__name__, 0 if key is None else key))
    items = [
        [_encode(key, name, blocks), _encode(value[key], f"{name}[{key!r}]", blocks, depth + 1)]
        for key in keys
    ]
    return {kind: items}


def _encode_array(value: np.ndarray[Any, Any], name: str, blocks: list[bytes]) -> Any:
    if value.dtype.hasobject or value.dtype.kind not in "biufc":
        raise InvalidArgumentError(
            f"{name} is an array of {value.dtype}, which has no canonical form; keep numbers in it"
        )
    little = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False)
    blocks.append(little.tobytes())
    return {"array": [little.dtype.str, list(value.shape)]}


def check_tensor(value: Any, name: str) -> None:
    """Whether a tensor of PyTorch has a canonical form.

    Raises:
        InvalidArgumentError: it has none; the message begins with ``name``.
    """
    torch = _torch()
    if value.layout is not torch.strided:
        raise InvalidArgumentError(f"{name} is a sparse tensor; keep its .to_dense()")
    if value.is_quantized:
        raise InvalidArgumentError(f"{name} is a quantized tensor; keep its .dequantize()")
    if value.is_meta:
        raise InvalidArgumentError(
            f"{name} is a tensor on the device meta, which has no values; keep one in host memory, "
            "such as torch.empty_like(tensor, device='cpu')"
        )


def _encode_tensor(value: Any, name: str, blocks: list[bytes]) -> Any:
    check_tensor(value, name)
    torch = _torch()
    flat = value.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    blocks.append(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    return {"tensor": [str(value.dtype).removeprefix("torch."), list(value.shape), str(value.device.type)]}


def _decode(tree: Any, data: memoryview, at: int) -> tuple[Any, int]:
    """The value of ``tree``, whose arrays begin at ``at``, and where they end."""
    if isinstance(tree, list):
        items = []
        for item in tree:
            value, at = _decode(item, data, at)
            items.append(value)
        return items, at
    if not isinstance(tree, dict):
        return tree, at
    ((kind, content),) = tree.items()
    if kind == "int":
        return int(content, 0), at  # older checkpoints have it in decimal
    if kind == "float":
        return float(content), at
    if kind == "tuple":
        value, at = _decode(content, data, at)
        return tuple(value), at
    if kind == "bytes":
        return bytes(_block(data, at, content)), at + content
    if kind == "number":
        array, at = _decode(content, data, at)
        return array[()], at
    if kind == "array":
        dtype, shape = np.dtype(content[0]), content[1]
        size = dtype.itemsize * math.prod(shape)
        return np.frombuffer(_block(data, at, size), dtype).reshape(shape).copy(), at + size
    if kind == "tensor":
        return _decode_tensor(content, data, at)
    items, at = _decode(content, data, at)
    # Not directly: a Counter would count the pairs.
    return _DICTS[kind](dict(tuple(item) for item in items)), at


def _decode_tensor(content: Any, data: memoryview, at: int) -> tuple[Any, int]:
    import torch

    name, shape, _device = content
    dtype = getattr(torch, name)
    result = torch.empty(shape, dtype=dtype)
    size = result.numel() * result.element_size()
    if size:
        raw = np.frombuffer(_block(data, at, size), np.uint8)
        result.reshape(-1).view(torch.uint8).copy_(torch.from_numpy(raw.copy()))
    return result, at + size


def _block(data: memoryview, at: int, size: int) -> memoryview:
    if at + size > len(data):
        raise ValueError("they end too early")
    return data[at : at + size]
