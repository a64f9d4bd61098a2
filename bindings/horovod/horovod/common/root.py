"""Which worker a rank means. Ranks change with the view, so a root is the worker that had one."""

from __future__ import annotations

from typing import Any

import numpy as np

import elastic


class Root(int):
    """The worker that has, or had, a rank."""

    worker: int

    def __new__(cls, rank: int, worker: int) -> Root:
        root = super().__new__(cls, rank)
        root.worker = worker
        return root

    @property
    def is_here(self) -> bool:
        """Whether it is this worker."""
        return bool(self.worker == elastic.worker_id())


#: The numbers that a `claim` has.
CLAIM_LENGTH = 4


def claim(digest: int, rank: int, view: elastic.Contributors) -> np.ndarray[Any, np.dtype[np.int64]]:
    """What a member tells the others of a call with a root: the digest of its arguments, and which
    worker has ``rank`` in the view in which it began the call."""
    size = len(view)
    worker = view.workers[rank] if 0 <= rank < size else 0
    return np.array([digest, view.generation, size, worker], np.uint64).view(np.int64)


def root_in(claims: np.ndarray[Any, np.dtype[np.int64]], rank: int) -> Root:
    """The worker with ``rank`` in the oldest of the views in which the members began the call: those
    that began it later may mean another one by this number. The same on all members.

    Raises:
        ValueError: there was none.
    """
    rows = claims.view(np.uint64).reshape(-1, CLAIM_LENGTH).tolist()
    _, _, size, worker = min(rows, key=lambda row: row[1])
    if not 0 <= rank < size:
        raise ValueError(f"broadcast: root {rank} is no rank; there are {size}")
    return Root(rank, worker)
