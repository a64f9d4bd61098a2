"""The messages of a process group: what send, recv, isend and irecv of torch.distributed call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

import elastic
from elastic.torch.group_members import GroupMembers
from elastic.torch.group_tensors import in_place
from elastic.torch.group_work import GroupWork, Part


class Messages:
    """send and recv, whose operation is under way when the call returns. A tensor on a device goes
    through host memory."""

    #: What has the calls: the extension module, for all members of the job, or a Group.
    _on: Any
    _named: GroupMembers

    def send(self, tensors: Sequence[torch.Tensor], rank: int, tag: int = 0) -> Any:
        parts = [self._sending(tensor, rank, tag) for tensor in in_place(tensors, "send")]
        return GroupWork(parts, tensors)

    def recv(self, tensors: Sequence[torch.Tensor], rank: int, tag: int = 0) -> Any:
        parts = [self._receiving(tensor, rank, tag) for tensor in in_place(tensors, "recv")]
        return GroupWork(parts, tensors)

    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int = 0) -> Any:
        raise NotImplementedError(
            "recv: the process group 'elastic' receives from a rank that is named; give src"
        )

    def _sending(self, tensor: torch.Tensor, rank: int, tag: int) -> Part:
        given, peer = _on_host(tensor.detach()), self._named.peer("send", rank)
        with self._named.errors_of_peer("send", rank):
            work = self._on.send_async(given, peer, tag)
        return Part(work, self._waiting("send", rank, work.wait))

    def _receiving(self, tensor: torch.Tensor, rank: int, tag: int) -> Part:
        room, peer = _on_host(tensor.detach()), self._named.peer("recv", rank)
        with self._named.errors_of_peer("recv", rank):
            pending = self._on.recv_async(room, peer, tag)
        wait = self._waiting("recv", rank, pending.wait)

        def finish() -> None:
            count = wait().count
            if count != tensor.numel():
                raise elastic.InvalidArgumentError(
                    f"recv: the message of rank {rank} has {count} elements, and the tensor has "
                    f"{tensor.numel()}; give one of the message's size"
                )
            if not _is_on_host(tensor):
                tensor.copy_(room)

        return Part(pending.work, finish)

    def _waiting(self, call: str, rank: int, wait: Callable[[], Any]) -> Callable[[], Any]:
        def finish() -> Any:
            with self._named.errors_of_peer(call, rank):
                return wait()

        return finish


def _is_on_host(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu"


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if _is_on_host(tensor) else tensor.cpu()
