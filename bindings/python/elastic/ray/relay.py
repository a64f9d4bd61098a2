"""The driver's end of all agents: takes the commands of connectors to actors, and output back.

It runs in a thread of its own, with an event loop. The same thread keeps the list of hosts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import struct
import threading
from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from elastic.ray import agent, cluster, hosts
from elastic.ray.hosts import Node

_CUT_OFF = b"255"  # as ssh's
_FRAME = struct.Struct("!BI")
_SECONDS_BETWEEN_READINGS = 1.0
#: Pieces of output that an actor may be ahead of its reader.
_PIECES_AHEAD = 64


class Relay:
    """Owned by the job, which makes and closes it."""

    def __init__(
        self, folder: pathlib.Path, wanted: Mapping[str, float], slots: int, start_seconds: float
    ) -> None:
        self._wanted = wanted
        self._slots = slots
        self._start_seconds = start_seconds
        self._socket = folder / "relay"
        self.host_file = folder / "hosts"
        self._nodes: dict[str, Node] = {}  # by the names of hosts; those that have left, too
        self._take(cluster.nodes())
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._closed = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="elastic-ray", daemon=True)
        self._thread.start()
        self._listening.wait()

    @property
    def socket(self) -> pathlib.Path:
        """Where connectors connect."""
        return self._socket

    def close(self) -> None:
        """Ends the actors that are left, and the thread."""
        self._loop.call_soon_threadsafe(self._closed.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_unix_server(self._connected, self._socket)
        self._listening.set()
        following = asyncio.create_task(self._follow())
        await self._closed.wait()
        following.cancel()
        server.close()

    async def _follow(self) -> None:
        """The list of hosts is that of a second ago. While Ray does not answer, the last one holds."""
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_READINGS)
            with contextlib.suppress(RayError, RuntimeError):
                self._take(await asyncio.to_thread(cluster.nodes))

    def _take(self, nodes: list[Node]) -> None:
        listed = hosts.hosts_among(nodes, self._wanted)
        self._nodes.update((node.host, node) for node in listed)
        text = hosts.host_list(listed, self._slots)
        if not self.host_file.exists() or self.host_file.read_text() != text:
            new = self.host_file.with_suffix(".new")
            new.write_text(text)
            os.replace(new, self.host_file)  # its reader sees a whole list

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            line = await reader.readline()
            if not line:
                return
            request = json.loads(line)
            node = self._nodes[request["host"]]
            connection = _Connection(reader, writer)
            actor = self._start_actor(node)
            try:
                await connection.serve(actor, request, self._start_seconds)
            except (RayError, RuntimeError) as error:
                await connection.write(agent.STDERR, f"{_reason(error)}\n".encode())
                await connection.write(agent.EXITED, _CUT_OFF)
            finally:
                ray.kill(actor)

    def _start_actor(self, node: Node) -> Any:
        others = {name: amount for name, amount in self._wanted.items() if name not in ("CPU", "GPU")}
        return (
            ray.remote(agent.Agent)
            .options(
                num_cpus=self._wanted.get("CPU", 0),
                num_gpus=self._wanted.get("GPU", 0),
                resources=others,
                max_concurrency=2,  # `end` comes while `run` runs
                scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
            )
            .remote()
        )


class _Connection:
    """A connector's: its stdin, and what is to be written in its name."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def write(self, channel: int, data: bytes) -> None:
        self._writer.write(_FRAME.pack(channel, len(data)) + data)
        await self._writer.drain()

    async def serve(self, actor: Any, request: Mapping[str, str], start_seconds: float) -> None:
        output = actor.run.options(
            num_returns="streaming", _generator_backpressure_num_objects=_PIECES_AHEAD
        ).remote(request["command"], request["secret"].encode())
        try:
            await asyncio.wait_for(_first(output), start_seconds)
        except asyncio.TimeoutError:
            raise RuntimeError(
                f"its actor did not start within {start_seconds:g} s: others may hold the resources "
                "that it needs (ray status)"
            ) from None
        ending = asyncio.create_task(self._end_with_stdin(actor))
        try:
            async for piece in output:
                await self.write(*await piece)
        finally:
            ending.cancel()

    async def _end_with_stdin(self, actor: Any) -> None:
        await self._reader.read()
        actor.end.remote()


async def _first(output: Any) -> None:
    await (await anext(output))


def _reason(error: Exception) -> str:
    """One line of Ray's long texts."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if "died because" in line or "Error:" in line]
    return f"Ray: {(ours or lines or [type(error).__name__])[0]}"
