"""Writes elastic/_core.pyi, the types of the extension module, from the installed package.

    python make_stub.py [FILE]

nanobind's stubgen knows all signatures; what a tensor may be and what comes back for which is added here.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile

STUB = pathlib.Path(__file__).parent / "elastic" / "_core.pyi"

_HEADER = '''"""The C++ library as Python sees it. Written by make_stub.py."""

from typing import Any, Protocol, TypeAlias, overload

from typing_extensions import Buffer

from elastic.pending import Pending

class _DLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

Tensor: TypeAlias = Buffer | _DLPack
'''

_ALLREDUCE = """\
{indent}@overload
{indent}def allreduce({self}tensor: bool, op: ReduceOp = ...) -> bool: ...
{indent}@overload
{indent}def allreduce({self}tensor: int, op: ReduceOp = ...) -> int: ...
{indent}@overload
{indent}def allreduce({self}tensor: float, op: ReduceOp = ...) -> float: ...
{indent}@overload
{indent}def allreduce({self}tensor: Tensor, op: ReduceOp = ..., out: Tensor | None = None, *, prescale: float = ..., postscale: float = ...) -> Contributors:
"""

#: The types that stubgen cannot know, as pairs of patterns and replacements.
_TYPES = (
    (r"\b(tensor|block|out): object( \| None)? = None", r"\1: Tensor | None = None"),
    (r"\b(tensor|block|out|values|indices): object( \| None)?", r"\1: Tensor"),
    (r"\b(tensors|sums|gradient_sum|parameters): Sequence\b(?!\[)", r"\1: Sequence[Tensor]"),
    (r"\btotal: Sequence\[float\]", r"total: Sequence[float] | NDArray[numpy.float64]"),
    (r"\bout: Tensor = None", r"out: Tensor | None = None"),
    (r"\b(root|to|source): Root\b", r"\1: int | Root"),
    (r"(recv_async\(.*) -> object:", r"\1 -> Pending[ReceivedMessage]:"),
    (r"(_grouped_(?:reduce_scatter|allgather)(?:_async)?\(.*)\bout: Sequence\b(?!\[)", r"\1out: Sequence[Tensor]"),
    (r"(_grouped_allgather(?:_async)?\(.*)\bblocks: Sequence\b(?!\[)", r"\1blocks: Sequence[Tensor]"),
    (r"(_grouped_reduce_scatter\(.*) -> tuple:", r"\1 -> tuple[list[tuple[int, int]], Contributors]:"),
    (r"(_grouped_allgather\(.*) -> tuple:", r"\1 -> tuple[list[tuple[int, list[int]]], Contributors]:"),
    (r"(_(?:allgather|alltoall|gather)\(.*) -> tuple:", r"\1 -> tuple[Any, list[int], Contributors]:"),
    (r"(_(?:allgather|alltoall|gather)_into\(.*) -> tuple:", r"\1 -> tuple[int, list[int], Contributors]:"),
    (r"(_(?:reduce_scatter|scatter)\(.*) -> tuple:", r"\1 -> tuple[Any, int, Contributors]:"),
    (r"(_(?:reduce_scatter|scatter)_into\(.*) -> tuple:", r"\1 -> tuple[int, int, Contributors]:"),
    (r"(_grouped_sparse_allreduce\(.*) -> tuple:", r"\1 -> tuple[list[Any], Contributors]:"),
    (r"(_sparse_allreduce\(.*) -> tuple:", r"\1 -> tuple[Any, Any, Contributors]:"),
    (r"(_result\(self\)) -> object:", r"\1 -> Any:"),
    (r"Annotated\[NDArray\[(.*?)\], dict\(.*?\)\]", r"NDArray[\1]"),
    (r"from typing import (Annotated, )?(Any(, overload)?|Annotated)\n", ""),
)


def _with_overloads(match: re.Match[str]) -> str:
    indent, own = match.group(1), match.group(2) or ""
    return _ALLREDUCE.format(indent=indent, self=own)


def stub() -> str:
    """The stub of the package that this Python has installed."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "_core.pyi"
        subprocess.run(
            [sys.executable, "-m", "nanobind.stubgen", "-q", "-P", "-m", "elastic._core", "-o", file],
            check=True,
        )
        text = file.read_text()
    text = re.sub(
        r"^( *)def allreduce\((self, )?tensor: object.*out: .*\) -> object:\n",
        _with_overloads,
        text,
        flags=re.M,
    )
    for pattern, types in _TYPES:
        text = re.sub(pattern, types, text)
    return _HEADER + "\n" + text


if __name__ == "__main__":
    pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else STUB).write_text(stub())
