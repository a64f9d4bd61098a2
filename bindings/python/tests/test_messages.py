"""Messages between two members."""

from __future__ import annotations

import array
import os
import queue
import signal

import numpy as np
import pytest

import elastic
from conftest import Job


def ring(members: elastic.Collectives | None, own: int, count: int) -> None:
    """Every member sends to the next one, as functions or as methods."""
    on = elastic if members is None else members
    following, before = (own + 1) % count, (own - 1) % count
    for size in (0, 1, 7, 100_000):
        room = np.full((size + 2,), -1.0)
        coming = on.recv_async(room, before, tag=7)
        sent = on.send(np.full((1, size), float(own)), following, 7)
        message = coming.wait()
        assert isinstance(message, elastic.ReceivedMessage)
        assert message.count == size and len(message.contributors) == 2 == len(sent)
        assert coming.wait() is message
        assert (room == [before] * size + [-1.0] * 2).all()
        work = on.send_async(np.array([own, size]), elastic.Root(following))
        pair = np.zeros(2, int)
        assert on.recv(pair, before).count == 2
        assert pair.tolist() == [before, size] and len(work.wait()) == 2


def messages() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    ring(None, rank, n)
    ring(elastic.group(elastic.GroupRule.every(2, rank % 2)), rank // 2, 2)
    # Tags overtake each other, and messages with one tag do not.
    if rank == 0:
        works = [
            elastic.send_async(array.array("i", [each]), 1, tag) for each, tag in ((1, 0), (2, 5), (3, 0))
        ]
        elastic.wait_all(works)
    if rank == 1:
        got = []
        for tag in (5, 0, 0):
            number = array.array("i", [0])
            elastic.recv(number, elastic.Root.worker(elastic.members().workers[0]), tag)
            got.append(number[0])
        assert got == [2, 1, 3]
    # The message keeps its memory, and its function is called with the Pending.
    if rank == 2:
        elastic.send(np.arange(1000), 3)
    if rank == 3:
        seen: queue.Queue[int] = queue.Queue()
        pending = elastic.recv_async(np.zeros(1000, int), 2)
        pending.then(lambda each: seen.put(each.wait().count))
        pending.wait()
        elastic.wait_all([pending])
        assert pending.ready() and repr(pending.wait()).startswith("ReceivedMessage(count=1000, contr")
        assert seen.get(timeout=30) == 1000  # it is called on another thread, maybe after the wait
    elastic.shutdown()


def test_messages(job: Job) -> None:
    job(4, messages)


def of_contexts() -> None:
    context = elastic.Context()
    ring(context, context.rank(), context.size())
    group = context.group(elastic.GroupRule.per_host())
    ring(group, group.rank(), group.size())
    context.barrier()


def test_messages_of_a_context(job: Job) -> None:
    job(3, of_contexts)


def mistakes() -> None:
    elastic.init()
    rank = elastic.rank()
    one = np.zeros(1)
    for call in (elastic.send, elastic.send_async, elastic.recv, elastic.recv_async):
        with pytest.raises(elastic.InvalidArgumentError, match="is this worker itself"):
            call(one, rank)
        with pytest.raises(elastic.InvalidArgumentError, match="2 is no rank; there are 2"):
            call(one, 2)
        with pytest.raises(elastic.RootLostError, match="is no member"):
            call(one, elastic.Root.worker(7))
        with pytest.raises(TypeError):
            call(None, 1 - rank)  # type: ignore
        with pytest.raises(elastic.InvalidArgumentError, match="contiguous"):
            call(np.zeros(4)[::2], 1 - rank)
    fixed = np.zeros(1)
    fixed.flags.writeable = False
    with pytest.raises(elastic.InvalidArgumentError, match="out"):
        elastic.recv(fixed, 1 - rank)
    if rank == 0:
        elastic.send(np.zeros(5), 1)
    else:
        with pytest.raises(elastic.InvalidArgumentError, match="the message has 5 elements"):
            elastic.recv(one, 0)
    with pytest.raises(elastic.MismatchError, match="f32.*f64|f64.*f32"):
        if rank == 0:
            elastic.send(np.zeros(1, np.float32), 1)
        else:
            elastic.recv_async(one, 0).wait()
    elastic.shutdown()


def test_mistakes(job: Job) -> None:
    job(2, mistakes)


def dies() -> None:
    """A worker is killed that is to receive one message and to send another."""
    elastic.init()
    rank = elastic.rank()
    dead = elastic.Root.worker(elastic.members().workers[2])
    group = elastic.group(elastic.GroupRule.ranks([0, 2]))
    room = np.zeros(3)
    coming = elastic.recv_async(room, dead) if rank == 1 else None
    elastic.barrier()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(elastic.RootLostError, match="worker"):
        if coming is not None:
            coming.wait()
        else:
            group.send(room, dead)
    with pytest.raises(elastic.RootLostError):
        elastic.send(room, dead)
    elastic.barrier()
    ring(None, elastic.rank(), elastic.size())
    print("went on")
    elastic.shutdown()


def test_the_other_worker_dies(job: Job) -> None:
    output = job(3, dies, "--max-restarts", "0")
    assert output.count("went on") == 2, output
