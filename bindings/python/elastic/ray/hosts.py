"""Which nodes of a Ray cluster are hosts of the job. Decisions only: without Ray, without I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A node of the cluster, as Ray describes it."""

    id: str
    hostname: str
    resources: Mapping[str, float]  #: all that the node has, in use or not
    alive: bool = True
    draining: bool = False  #: Ray is to end it

    @property
    def host(self) -> str:
        """The name of the node in the job: several nodes may run on one machine."""
        return re.sub(r"[^A-Za-z0-9._]+", "-", f"node-{self.hostname}-{self.id[:8]}")


def lacks(node: Node, wanted: Mapping[str, float]) -> str:
    """What the node has too little of, such as ``1 of 2 CPU``; empty if it is large enough."""
    return ", ".join(
        f"{node.resources.get(name, 0):g} of {amount:g} {name}"
        for name, amount in sorted(wanted.items())
        if node.resources.get(name, 0) < amount
    )


def hosts_among(nodes: Iterable[Node], wanted: Mapping[str, float]) -> list[Node]:
    """The nodes that run workers: those that stay and are large enough, in a stable order."""
    staying = (node for node in nodes if node.alive and not node.draining)
    return sorted((node for node in staying if not lacks(node, wanted)), key=lambda node: node.id)


def host_list(hosts: Iterable[Node], slots: int) -> str:
    """The hosts as ``elasticrun --hostfile`` reads them."""
    return "".join(f"{node.host} slots={slots}\n" for node in hosts)


def why_no_room(nodes: Iterable[Node], wanted: Mapping[str, float], slots: int, workers: int) -> str:
    """Empty if the cluster has room for so many workers; or else the reason, node by node."""
    nodes = list(nodes)  # it is read twice
    room = len(hosts_among(nodes, wanted)) * slots
    if room >= workers:
        return ""
    alive = [node for node in nodes if node.alive]
    reasons = [f"{node.host} has {lacks(node, wanted)}" for node in alive if lacks(node, wanted)]
    reasons += [f"{node.host} is being drained" for node in alive if node.draining]
    return "; ".join([f"the cluster has room for {room} workers, and {workers} are needed", *reasons])
