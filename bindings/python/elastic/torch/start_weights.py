"""Whether all members begin with the same weights, which averages of gradients do not make equal."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import torch

import elastic
from elastic.state import is_running


class StartWeights:
    """Compares the weights of all members once, in the first step.

    Within ``elastic.run`` there is nothing to compare: the State has made them the same, and joiners,
    which take a first step of their own, come there only.
    """

    def __init__(self, name: str, parameters: Iterable[torch.nn.Parameter]) -> None:
        """``name`` is the same on all members, and no other operation's."""
        self._name = f"{name}, start weights"
        self._parameters = list(parameters)
        self._compared = False

    def compare(self) -> None:
        """Called by all members at the same point of their step, before weights change.

        Raises:
            InvalidArgumentError: the weights differ; on all members alike.
        """
        if self._compared:
            return
        self._compared = True
        if is_running():
            return
        checksum = self._checksum()
        bounds = torch.tensor([checksum, -checksum], dtype=torch.int64)
        elastic.allreduce_async(self._name, bounds, elastic.MAX).wait()
        if bounds[0] != -bounds[1]:
            raise elastic.InvalidArgumentError(
                "the members began with different weights, which the same gradients do not make "
                "equal: train within elastic.run(state, train), which sends the State to all, or "
                "give all workers the same seed, or call elastic.broadcast(parameter.data, 0) for "
                "each parameter before the first step"
            )

    def _checksum(self) -> int:
        checksum = 0
        for parameter in self._parameters:
            weights = parameter.detach().cpu().contiguous().reshape(-1)
            checksum = zlib.crc32(weights.view(torch.uint8).numpy(), checksum)
        return checksum
