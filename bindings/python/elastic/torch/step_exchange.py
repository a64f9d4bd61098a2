"""Gradients on their way whose allreduces are committed together: those of one step as one unit."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

import elastic
from elastic.torch.gradient_exchange import Exchange, Group, Parameter, in_place_of_sparse
from elastic.torch.sparse_rows import packed


class StepExchange(Exchange):
    """An Exchange whose groups, of one parameter each, are the tensors of a StepGroup.

    After a death in the step all averages are over the same workers:

    1. Dense gradients are summed from where they travel into memory of this object, so that they are
       there for another sum. Rows of sparse gradients are gathered meanwhile.
    2. The StepGroup makes the dense sums one unit. If the rows of a gradient were gathered after a
       further death, the dense sums are made again: then these are the ones with the fewest workers.
    3. Rows of workers that are not among those of the dense sums are left out.

    All members decide alike, because the contributors of an operation are the same on all.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._step: elastic.StepGroup | None = None
        #: The rows of sparse gradients under way.
        self._rows: dict[Parameter, elastic.Pending[elastic.Gathered]] = {}
        #: Where the sums go; kept from step to step.
        self._sums: dict[Parameter, torch.Tensor] = {}
        super().__init__(*arguments, **named)

    def under_way(self) -> bool:
        return self._step is not None

    def forget(self) -> None:
        if self._step is not None:
            with contextlib.suppress(elastic.Error):
                self._step.wait()
        for pending in self._rows.values():
            with contextlib.suppress(elastic.Error):
                pending.wait()
        self.begin_step()

    def begin_step(self) -> None:
        super().begin_step()
        self._step = None
        self._rows = {}

    def _send(self, group: Group) -> None:
        (parameter,), (travelling,) = group.parameters, group.travelling
        if self._step is None:
            self._step = elastic.StepGroup()
        self._step.allreduce(
            group.name, travelling, self._op, out=self._room_for(parameter, travelling)
        )
        if parameter in self._sparse and parameter not in self._rows:
            gradient = parameter.grad
            assert gradient is not None
            rows = packed(self._coalesced(parameter, gradient))
            self._rows[parameter] = elastic.allgather_async(rows, name=f"{group.name}, rows")

    def _room_for(self, parameter: Parameter, travelling: torch.Tensor) -> torch.Tensor:
        room = self._sums.get(parameter)
        if room is None or room.shape != travelling.shape or room.dtype != travelling.dtype:
            room = torch.empty_like(travelling, memory_format=torch.contiguous_format)
            self._sums[parameter] = room
        return room

    def _finish_all(self) -> list[elastic.Contributors]:
        if self._step is None:
            return []
        contributors = self._wait_for_step(self._step)
        gathered = {parameter: pending.wait() for parameter, pending in self._rows.items()}
        workers = set(contributors.workers)
        if any(not workers <= set(rows.contributors.workers) for rows in gathered.values()):
            contributors = self._sum_again(self._step)
        for group in self._groups:
            (parameter,), (travelled,) = group.parameters, group.travelling
            gradient = parameter.grad
            if gradient is None:  # set to None while it travelled
                gradient = parameter.grad = self._zeros(parameter)
            if parameter in gathered:
                like = self._coalesced(parameter, gradient)
                rows = _rows_of(gathered[parameter], contributors)
                parameter.grad = self._total_of_rows(rows, like, len(contributors))
            else:
                travelled.copy_(self._sums[parameter])
                self._take_result(gradient, travelled)
        return [contributors]

    def _wait_for_step(self, step: elastic.StepGroup) -> elastic.Contributors:
        """Waits for the dense sums. Members that gave zeros for a gradient which is sparse on others
        learn of it as in an Exchange, and then give no rows."""
        try:
            return step.wait()
        except elastic.MismatchError:
            of_all = [group.parameters[0] for group in self._groups]
            sparse = torch.tensor([p in self._sparse for p in of_all], dtype=torch.uint8)
            elastic.allreduce_async(f"{self._groups[0].name}, sparse", sparse, elastic.MAX).wait()
            if not sparse.any():
                raise
        for group, is_sparse in zip(self._groups, sparse.tolist()):
            (parameter,) = group.parameters
            if is_sparse and parameter in group.zeros and parameter not in self._sparse:
                self._sparse.add(parameter)
                parameter.grad = self._zeros(parameter)
                group.check = None
                group.travelling = [in_place_of_sparse(parameter)]
        return self._sum_again(step)

    def _sum_again(self, step: elastic.StepGroup) -> elastic.Contributors:
        for group in self._groups:
            self._send(group)
        return step.wait()


def _rows_of(gathered: elastic.Gathered, contributors: elastic.Contributors) -> torch.Tensor:
    """The gathered rows of those workers alone."""
    kept = set(contributors.workers)
    rows: torch.Tensor = gathered.values
    blocks = rows.split(gathered.counts)
    workers = gathered.contributors.workers
    return torch.cat([block for block, worker in zip(blocks, workers) if worker in kept])
