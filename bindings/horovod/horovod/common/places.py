"""Which worker a rank means. Ranks change with the view, so a root is a rank in a certain view."""

from __future__ import annotations

import elastic

#: This worker's rank in each view that it has seen, by the view's generation.
_ranks: dict[int, int] = {}
#: Bits for the number of members in `_packed`.
_BITS = 20


class Root(int):
    """The worker that has, or had, a rank in the view of ``generation``."""

    generation: int

    def __new__(cls, rank: int, generation: int) -> Root:
        root = super().__new__(cls, rank)
        root.generation = generation
        return root

    @property
    def is_here(self) -> bool:
        """Whether it is this worker."""
        return _ranks.get(self.generation) == int(self)

    def lost(self) -> elastic.RootLostError:
        """The error, on all members alike, of a call to which the root did not come."""
        return elastic.RootLostError(
            f"broadcast: the root was lost: the worker that had rank {int(self)} in generation "
            f"{self.generation} is gone; call again with a root that is there",
            generation=elastic.generation(),
        )


def note(contributors: elastic.Contributors) -> None:
    """Remembers this worker's rank in the view of a call that is complete."""
    if contributors.generation not in _ranks:
        _ranks[contributors.generation] = contributors.workers.index(elastic.worker_id())


def present() -> int:
    """The present view, as a number that is the greater the older the view is. Remembers this
    worker's rank in it."""
    while True:
        generation, rank, size = elastic.generation(), elastic.rank(), elastic.size()
        if generation == elastic.generation():  # and not that of the view after it
            _ranks[generation] = rank
            return size - (generation << _BITS)


def root_in(view: int, rank: int) -> Root:
    """The worker with ``rank`` in the view that a result of ``present`` tells.

    Raises:
        ValueError: there was none.
    """
    size = view & ((1 << _BITS) - 1)
    if not 0 <= rank < size:
        raise ValueError(f"broadcast: root {rank} is no rank; there are {size}")
    return Root(rank, -(view >> _BITS))
