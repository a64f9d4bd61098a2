"""The driver's end of all agents: takes commands to actors, and output back.

``elasticrun --hostfile --ssh`` decides which hosts have an agent, and with how many workers. For each it
starts a connector in place of ssh:

    elasticrun -> connector -> relay, in the driver -> actor on the node -> agent

The relay also keeps the list of hosts, which follows the nodes of the cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import shlex
import socket
import struct
import sys
import threading
from collections.abc import Mapping
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from elastic.ray import agent, cluster, hosts
from elastic.ray.hosts import Node

_CUT_OFF = b"255"  # as ssh's
_FRAME = struct.Struct("!BI")
_SECONDS_BETWEEN_READINGS = 1.0
#: In bytes. A command has the variables of the workers in it.
_LONGEST_REQUEST = 1 << 22
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
        self.host_file = folder / "hosts"
        self.connect = folder / "connect"  #: the program in place of ssh
        self._said = ""  # the latest complaint
        self._nodes: dict[str, Node] = {}  # by the names of hosts; those that have left, too
        self._take(cluster.nodes())
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "relay"))
        self._write_program(folder / "relay")
        self._loop = asyncio.new_event_loop()
        self._closed = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="elastic-ray", daemon=True)
        self._thread.start()

    def _write_program(self, address: pathlib.Path) -> None:
        # elasticrun splits --ssh at spaces, which may be in these paths.
        connector = pathlib.Path(__file__).with_name("connector.py")
        words = [sys.executable, "-I", "-S", str(connector), str(address)]
        self.connect.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        self.connect.chmod(0o700)

    def close(self) -> None:
        """Ends the actors that are left, and the thread."""
        self._loop.call_soon_threadsafe(self._closed.set)
        self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        following = asyncio.create_task(self._follow())
        server = await asyncio.start_unix_server(
            self._connected, sock=self._listener, limit=_LONGEST_REQUEST
        )
        await self._closed.wait()
        server.close()
        following.cancel()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_READINGS)
            try:
                self._take(await asyncio.to_thread(cluster.nodes))
                self._said = ""
            except Exception as error:  # whatever it is, the job goes on
                self._say_once(f"elastic.ray: {error}; going on with the list of nodes before")

    def _say_once(self, text: str) -> None:
        if text != self._said:
            print(text, file=sys.stderr, flush=True)
        self._said = text

    def _take(self, nodes: list[Node]) -> None:
        listed = hosts.hosts_among(nodes, self._wanted)
        self._nodes.update((node.host, node) for node in listed)
        text = hosts.host_list(listed, self._slots)
        if not self.host_file.exists() or self.host_file.read_text() != text:
            new = self.host_file.with_suffix(".new")
            new.write_text(text)
            os.replace(new, self.host_file)  # its reader sees a whole list

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled: before Python 3.12 asyncio shows that as an error.
        with contextlib.suppress(ConnectionError, asyncio.CancelledError), contextlib.closing(writer):
            line = await reader.readline()
            if not line:
                return
            request = json.loads(line)
            connection = _Connection(reader, writer)
            try:
                actor = self._start_actor(self._nodes[request["host"]])
                try:
                    await connection.serve(actor, request, self._start_seconds)
                finally:
                    ray.kill(actor)
            except ConnectionError:
                raise  # the connector's, to which nothing can be said
            except Exception as error:  # Ray's are of many classes
                await connection.write(agent.STDERR, f"{_reason(error)}\n".encode())
                await connection.write(agent.EXITED, _CUT_OFF)

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
                channel, data = await piece
                await self.write(channel, data)
                if channel == agent.EXITED:
                    return
        finally:
            ending.cancel()

    async def _end_with_stdin(self, actor: Any) -> None:
        with contextlib.suppress(ConnectionError):
            await self._reader.read()
        actor.end.remote()


async def _first(output: Any) -> None:
    await (await anext(output))


def _reason(error: Exception) -> str:
    """One line of Ray's long texts."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "died because" in line or "Error:" in line]
    return f"Ray: {(telling or lines or [type(error).__name__])[0]}"
