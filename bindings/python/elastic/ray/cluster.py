"""The nodes of the cluster, from Ray."""

from __future__ import annotations

import ray
from ray._private import state

from elastic.ray.hosts import Node


def nodes() -> list[Node]:
    """All nodes that Ray knows, also those that have left."""
    draining = _draining()
    return [
        Node(
            id=entry["NodeID"],
            hostname=entry["NodeManagerHostname"],
            resources=entry["Resources"],
            alive=entry["Alive"],
            draining=entry["NodeID"] in draining,
        )
        for entry in ray.nodes()
    ]


def _draining() -> set[str]:
    # No public call tells it without Ray's dashboard.
    read = getattr(state.state, "get_draining_nodes", None)
    return set() if read is None else set(read())
