"""The collectives of a process group whose tensors are made for a number of ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

import elastic
from elastic.torch.group_members import GroupMembers, other_sizes, wrong_size
from elastic.torch.group_work import Part, started

#: A count that fits no tensor: the call then ends in an error on all members alike.
_TOO_MANY = 2**62


class BlockCollectives:
    """all_gather, reduce_scatter, all_to_all, gather and scatter.

    If the number of ranks is no longer that of the tensors, or members have other workers in mind,
    all of them get an error.
    """

    #: What has the calls: the extension module, for all members of the job, or a Group.
    _on: Any
    _named: GroupMembers

    def allgather(
        self,
        outputs: Sequence[Sequence[torch.Tensor]],
        inputs: Sequence[torch.Tensor],
        opts: Any = None,
    ) -> Any:
        parts = [
            self._gather(tensor, len(blocks), "all_gather", _into_each(blocks))
            for blocks, tensor in zip(outputs, inputs)
        ]
        return started(parts, outputs, opts)

    def allgather_coalesced(
        self,
        outputs: Sequence[Sequence[torch.Tensor]],
        inputs: Sequence[torch.Tensor],
        opts: Any = None,
    ) -> Any:
        # One list of outputs for each rank, with one tensor for each input.
        return self.allgather(list(zip(*outputs)), inputs, opts)

    def all_gather_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None, *_: Any
    ) -> Any:
        return self.all_gather_single_coalesced([output], [tensor], opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[torch.Tensor],
        opts: Any = None,
        *_: Any,
    ) -> Any:
        parts = [
            self._gather(
                tensor, output.numel() // tensor.numel(), "all_gather_into_tensor", _into(output)
            )
            for output, tensor in zip(outputs, inputs)
            if tensor.numel() > 0
        ]
        return started(parts, outputs, opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def _gather(
        self, tensor: torch.Tensor, ranks: int, call: str, fill: Callable[[torch.Tensor], Any]
    ) -> Part:
        """Gathers the tensors of all members; ``fill`` gets a row for each."""
        block = tensor.detach().reshape(-1).contiguous()
        work = self._on._allgather_async(block, [len(block), ranks])

        def finish() -> None:
            contributors = self._named.wait(work, other_sizes(call))
            if len(contributors) != ranks:
                raise wrong_size(call, ranks, len(contributors))
            fill(work._result()[0].reshape(ranks, -1))

        return Part(work, finish)

    def _scatter_sum(
        self, output: torch.Tensor, flat: torch.Tensor, operation: elastic.ReduceOp, call: str
    ) -> list[Part]:
        """This rank's part of a sum."""
        count = output.numel()
        if count == 0:
            return []
        work = elastic.reduce_scatter_async(flat.contiguous(), operation, context=self._on)
        ranks = flat.numel() // count

        def finish() -> None:
            part = work.wait()
            self._named.last = part.contributors
            if part.values.numel() != count or len(part.contributors) != ranks:
                raise wrong_size(call, ranks, len(part.contributors))
            output.copy_(part.values.view(output.shape))

        return [Part(work, finish)]

    def alltoall(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in inputs])
        counts = [tensor.numel() for tensor in inputs]
        room = [tensor.numel() for tensor in outputs]
        part = self._exchange(flat, counts, room, "all_to_all", _into_each(outputs, room))
        return started([part], outputs, opts)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int] = (),
        input_splits: Sequence[int] = (),
        opts: Any = None,
    ) -> Any:
        ranks = len(self._named)
        part = self._exchange(
            tensor.detach().reshape(-1).contiguous(),
            _elements(tensor, input_splits, ranks),
            _elements(output, output_splits, ranks),
            "all_to_all_single",
            lambda values: output.copy_(values.view(output.shape)),
        )
        return started([part], [output], opts)

    alltoall_base = all_to_all_single

    def _exchange(
        self,
        flat: torch.Tensor,
        counts: list[int],
        room: list[int],
        call: str,
        fill: Callable[[torch.Tensor], Any],
    ) -> Part:
        """Gives each member some elements; ``fill`` gets those of all."""
        members = self._named.last
        given = counts or [_TOO_MANY]
        work = self._on._alltoall_async(flat, given, members, self._named.alike(len(members)))

        def finish() -> None:
            contributors = self._named.wait(work, other_sizes(call))
            if len(contributors) != len(members):
                raise wrong_size(call, len(members), len(contributors))
            values, received = work._result()
            if received != room:
                raise elastic.InvalidArgumentError(
                    f"{call}: the ranks have sent {received} elements, and the output is for {room}; "
                    "give each rank an output, or output_split_sizes, for what it is sent"
                )
            fill(values)

        return Part(work, finish)

    def gather(
        self,
        outputs: Sequence[Sequence[torch.Tensor]],
        inputs: Sequence[torch.Tensor],
        opts: Any,
    ) -> Any:
        root = opts.rootRank
        if not self._named.is_here(root):
            parts = [self._gather_to(root, tensor, len(self._named), None) for tensor in inputs]
        else:
            parts = [
                self._gather_to(root, tensor, len(blocks), _into_each(blocks))
                for blocks, tensor in zip(outputs, inputs)
            ]
        return started(parts, outputs, opts)

    def gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any) -> Any:
        fill, ranks = None, len(self._named)
        if self._named.is_here(opts.rootRank):
            fill = _into(output)
            ranks = output.numel() // max(tensor.numel(), 1)
        return started([self._gather_to(opts.rootRank, tensor, ranks, fill)], [output], opts)

    gather_into_tensor = gather_single

    def _gather_to(
        self,
        root: int,
        tensor: torch.Tensor,
        ranks: int,
        fill: Callable[[torch.Tensor], Any] | None,
    ) -> Part:
        """``fill`` of the root gets a row for each member."""
        block = tensor.detach().reshape(-1).contiguous()
        alike = self._named.alike(len(block), ranks)
        work = self._on._gather_async(block, self._named.root(root), alike)

        def finish() -> None:
            with self._named.errors_of_root("gather", root):
                contributors = work.wait()
            self._named.last = contributors
            if len(contributors) != ranks:
                raise wrong_size("gather", ranks, len(contributors))
            if fill is not None:
                fill(work._result()[0].reshape(ranks, -1))

        return Part(work, finish)

    def scatter(
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[Sequence[torch.Tensor]],
        opts: Any,
    ) -> Any:
        lists = inputs if self._named.is_here(opts.rootRank) else [None] * len(outputs)
        parts = [
            part
            for output, blocks in zip(outputs, lists)
            for part in self._scatter_from(opts.rootRank, output, blocks)
        ]
        return started(parts, outputs, opts)

    def _scatter_from(
        self, root: int, output: torch.Tensor, blocks: Sequence[torch.Tensor] | None
    ) -> list[Part]:
        """``blocks`` of the root are for all members. Members compare sizes first, as a scatter alone
        does not tell them of the root's list."""
        members, size = self._named.last, output.numel()
        counts = None if blocks is None else [block.numel() for block in blocks]
        ranks = len(members) if counts is None else len(counts)
        fits = counts is None or set(counts) == {size}
        alike = self._named.alike(size if fits else _TOO_MANY, ranks)
        agreement = self._on._allgather_async(output.new_empty(0), alike)
        flat = output.new_empty(0)
        if blocks is not None:
            flat = torch.cat([block.detach().reshape(-1) for block in blocks])
        work = self._on._scatter_async(flat, self._named.root(root), counts, members)

        def agreed() -> None:
            with self._named.errors_of_root("scatter", root):
                agreement.wait()

        def finish() -> None:
            with self._named.errors_of_root("scatter", root):
                contributors = work.wait()
            self._named.last = contributors
            if len(contributors) != ranks:
                raise wrong_size("scatter", ranks, len(contributors))
            output.copy_(work._result()[0].view(output.shape))

        return [Part(agreement, agreed), Part(work, finish)]


def _elements(tensor: torch.Tensor, splits: Sequence[int], ranks: int) -> list[int]:
    """The elements of each rank's block."""
    row = math.prod(tensor.shape[1:])
    rows = len(tensor) if tensor.dim() > 0 else 1
    if len(splits) > 0:
        return [split * row if split >= 0 else _TOO_MANY for split in splits]
    return [rows // max(ranks, 1) * row] * ranks  # if they do not divide, the tensor has more


def _into(output: torch.Tensor) -> Callable[[torch.Tensor], Any]:
    return lambda rows: output.copy_(rows.view(output.shape))


def _into_each(
    blocks: Sequence[torch.Tensor], counts: list[int] | None = None
) -> Callable[[torch.Tensor], Any]:
    """Copies rows, or so many elements for each, into the tensors of a list."""

    def fill(values: torch.Tensor) -> None:
        rows = values if counts is None else values.split(counts)
        for block, row in zip(blocks, rows):
            block.copy_(row.view(block.shape))

    return fill
