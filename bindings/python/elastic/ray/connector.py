"""What the launcher calls in place of ssh: hands a command to the relay, and its output on.

    connector.py SOCKET HOST COMMAND

A program of its own, without the package: a job has one of these per node. Its exit code is that of the
command, or 255 if the command cannot be run or its end is not known, as for ssh.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading

_CUT_OFF = 255
_FRAME = struct.Struct("!BI")  # the descriptor, or 0 for the exit code; and a length


def main(path: str, host: str, command: str) -> int:
    request = {"host": host, "command": command, "secret": sys.stdin.readline()}
    try:
        with socket.socket(socket.AF_UNIX) as relay:
            relay.connect(path)
            relay.sendall(json.dumps(request).encode() + b"\n")
            threading.Thread(target=_pass_end_of_stdin, args=(relay,), daemon=True).start()
            return _pass_on_output(relay)
    except (OSError, ValueError, struct.error):
        return _CUT_OFF  # the driver has ended, or the launcher does not read any more


def _pass_on_output(relay: socket.socket) -> int:
    """Until the exit code comes."""
    with relay.makefile("rb") as frames:
        while True:
            channel, length = _FRAME.unpack(frames.read(_FRAME.size))
            data = frames.read(length)
            if channel == 0:
                return int(data)
            while data:
                data = data[os.write(channel, data) :]


def _pass_end_of_stdin(relay: socket.socket) -> None:
    sys.stdin.read()
    try:
        relay.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # it has ended meanwhile


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    os._exit(status)  # the thread may still wait for stdin
