"""What the launcher calls in place of ssh: hands a command to the relay, and its output on.

    connector.py SOCKET HOST COMMAND

A program of its own, without the package: a job has one of these per node. Its exit code is that of the
command, or 255 if the command cannot be run or its end is not known, as for ssh.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import threading

_CUT_OFF = 255
_FRAME = struct.Struct("!BI")  # the descriptor, or 0 for the exit code; and a length


def main(path: str, host: str, command: str) -> int:
    relay = socket.socket(socket.AF_UNIX)
    try:
        relay.connect(path)
    except OSError:
        # The driver has ended, and without it the launcher cannot start agents: let it end, too.
        os.kill(os.getppid(), signal.SIGTERM)
        return _CUT_OFF
    with relay:
        return _converse(relay, {"host": host, "command": command})


def _converse(relay: socket.socket, request: dict[str, str]) -> int:
    request["secret"] = sys.stdin.readline()
    try:
        relay.sendall(json.dumps(request).encode() + b"\n")
        threading.Thread(target=_pass_end_of_stdin, args=(relay,), daemon=True).start()
        with relay.makefile("rb") as answers:
            while header := answers.read(_FRAME.size):
                channel, length = _FRAME.unpack(header)
                data = answers.read(length)
                if channel == 0:
                    return int(data)
                while data:
                    data = data[os.write(channel, data) :]
    except (OSError, ValueError, struct.error):
        pass  # the driver has ended in the middle, or the launcher does not read any more
    return _CUT_OFF


def _pass_end_of_stdin(relay: socket.socket) -> None:
    sys.stdin.read()
    try:
        relay.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # it has ended meanwhile


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # the thread may still wait for stdin
