"""The actor on a node: it holds the node's agent, an ``elasticrun --join``."""

from __future__ import annotations

import contextlib
import os
import pathlib
import selectors
import subprocess
import sys
from collections.abc import Iterator

#: Where output comes from, as the numbers of descriptors; and the number of the exit code.
EXITED, STDOUT, STDERR = 0, 1, 2


class Agent:
    """Runs in a process of Ray. The agent ends when this process does, as its stdin ends then."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, command: str, secret: bytes) -> Iterator[tuple[int, bytes]]:
        """Starts the agent, and yields what it writes, and at last its exit code.

        Args:
            command: for ``sh``.
            secret: a line that goes to its stdin, which then stays open until ``end``.
        """
        yield STDOUT, b""  # this actor runs
        programs = pathlib.Path(sys.executable).parent
        environment = {**os.environ, "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}"}
        process = self._process = subprocess.Popen(
            ["sh", "-c", command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin and process.stdout and process.stderr
        with contextlib.suppress(BrokenPipeError):  # it ended at once, and says why
            process.stdin.write(secret)
            process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ, STDOUT)
            selector.register(process.stderr, selectors.EVENT_READ, STDERR)
            while selector.get_map():
                for key, _ in selector.select():
                    data = os.read(key.fd, 1 << 16)
                    if data:
                        yield key.data, data
                    else:
                        selector.unregister(key.fileobj)
        code = process.wait()
        yield EXITED, str(code if code >= 0 else 128 - code).encode()

    def end(self) -> None:
        """Lets the agent stop its workers at once, and end."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
