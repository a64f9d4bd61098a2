"""What Horovod has and elastic lacks: refused by name."""

from __future__ import annotations

from typing import NoReturn


def refuse(name: str, instead: str) -> NoReturn:
    """Raises the exception that says that ``name`` is missing, and what to use instead."""
    raise NotImplementedError(f"{name} is not in elastic-horovod yet; {instead}")


def no_framework(name: str) -> NoReturn:
    """Raises the ImportError of a part of Horovod that is for another framework."""
    raise ImportError(
        f"{name} is not in elastic-horovod, which has horovod.torch alone: use PyTorch, or install "
        "Horovod itself in an environment of its own",
        name=name,
    )
