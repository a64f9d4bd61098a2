"""The ``elasticrun`` of a job, a child process of the driver."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence

import elastic
from elastic.errors import UnavailableError

_PROGRAM = str(pathlib.Path(elastic.__file__).with_name("bin") / "elasticrun")
#: Lines of the launcher, and those of agents ("elasticrun on HOST: "). Workers' have a prefix.
_OF_ELASTICRUN = re.compile(rb"elasticrun(?:: | on )(?P<text>.*)")
_STDERR = 2


class Launcher:
    """Writes to the standard output and errors of the driver's process."""

    def __init__(self, job: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._job = job
        self._said: deque[str] = deque(maxlen=8)  # the latest lines
        self._process = subprocess.Popen(
            [_PROGRAM, "--job", job, *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C comes to it by `interrupt` alone
        )
        self._reading = threading.Thread(target=self._pass_on_errors, daemon=True)
        self._reading.start()

    def wait(self) -> int:
        """Waits for the end. Returns the exit code."""
        return self._process.wait()

    def interrupt(self) -> None:
        """Stops the job at the next step boundary; at the second call at once."""
        self._process.send_signal(signal.SIGINT)

    def control(self, *command: str) -> str:
        """What ``elasticrun ctl`` prints."""
        words = [_PROGRAM, "ctl", "--job", self._job, *command]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UnavailableError(done.stderr.strip())
        return done.stdout

    def close(self) -> None:
        """Stops the workers at once if the job has not ended."""
        if self._process.poll() is None:
            self._process.terminate()
            time.sleep(0.1)  # two signals that come together are one
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reading.join()

    def failure(self) -> str:
        """The last line, which names the hosts that failed, and what agents said before. After ``close``."""
        said = list(dict.fromkeys(self._said)) or [f"elasticrun ended with code {self._process.returncode}"]
        verdict = said.pop()
        return "\n  ".join([verdict, *(line for line in said if not line.startswith("host "))])

    def _pass_on_errors(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                if own := _OF_ELASTICRUN.match(line):
                    self._said.append(own["text"].decode(errors="replace"))
                try:
                    os.write(_STDERR, line)
                except OSError:
                    pass  # its reader is gone: the job is worth more than what is said of it
