"""Which nodes of a Ray cluster are hosts of a job, and the arguments of one. Ray is not needed."""

from __future__ import annotations

import pytest

import elastic
from elastic.ray import ElasticRayJob
from elastic.ray.hosts import Node, host_list, hosts_among, why_no_room

WANTED = {"CPU": 2.0, "GPU": 0.0, "fast_disk": 1.0}
ENOUGH = {"CPU": 8.0, "fast_disk": 1.0, "memory": 1e9}


def node(name: str, resources: dict[str, float], alive: bool = True, draining: bool = False) -> Node:
    return Node(name + 8 * "0", "vm", resources, alive, draining)


def test_hosts_are_the_nodes_that_stay_and_are_large_enough() -> None:
    nodes = [
        node("b", ENOUGH),
        node("c", {**ENOUGH, "CPU": 1}),
        node("d", {"CPU": 8}),
        node("e", ENOUGH, alive=False),
        node("f", ENOUGH, draining=True),
        node("a", ENOUGH),
    ]
    assert [host.id[0] for host in hosts_among(nodes, WANTED)] == ["a", "b"]


def test_nodes_of_one_machine_have_names_of_their_own() -> None:
    nodes = [Node("0123456789", "two words:1", {}), Node("abcdefghij", "two words:1", {})]
    assert host_list(nodes, 2) == "node-two-words-1-01234567 slots=2\nnode-two-words-1-abcdefgh slots=2\n"


def test_lack_of_room_is_explained_node_by_node() -> None:
    nodes = [
        node("a", ENOUGH),
        node("b", {**ENOUGH, "CPU": 1}),
        node("c", ENOUGH, draining=True),
        node("d", {}, alive=False),
    ]
    assert why_no_room(nodes, WANTED, slots=2, workers=2) == ""
    assert why_no_room(nodes, WANTED, slots=2, workers=3) == (
        "the cluster has room for 2 workers, and 3 are needed; node-vm-b0000000 has 1 of 2 CPU; "
        "node-vm-c0000000 is being drained"
    )


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(elastic.InvalidArgumentError, match="give a list of words"):
        ElasticRayJob("python train.py")
    with pytest.raises(elastic.InvalidArgumentError, match="workers_per_node must be at least 1, not 0"):
        ElasticRayJob(["train"], workers_per_node=0)
    with pytest.raises(elastic.InvalidArgumentError, match="max_workers 2 is less than min_workers 3"):
        ElasticRayJob(["train"], min_workers=3, max_workers=2)
    with pytest.raises(elastic.NotInitializedError, match="has not been started"):
        ElasticRayJob(["train"]).wait()
