"""Runs the commands of a section, in the root of the repository, for as long as it may take."""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile
import time

LAST_LINES = 15  # of what a command printed, for who has to find out why it failed
GRACE = 10.0  # seconds for a launcher to end what it started


class CommandFailed(Exception):
    """What failed and how; `output` is the end of what it printed."""

    def __init__(self, command, how, output):
        super().__init__(f"`{command}` {how}")
        self.output = output


class Commands:
    def __init__(self, root, seconds):
        self.root = root
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self.ran = []  # as they can be typed

    def run(self, words, unseen=()):
        """What a command prints. `unseen` are further words, which hold for this run alone."""
        command = shlex.join(words)
        self.ran.append(command)
        print(f"  {command}", flush=True)
        with tempfile.TemporaryFile("w+") as output:
            try:
                process = subprocess.Popen([*words, *unseen], cwd=self.root,
                                           stdin=subprocess.DEVNULL, stdout=output,
                                           stderr=subprocess.STDOUT, start_new_session=True)
            except OSError as error:
                raise CommandFailed(command, "cannot be started", str(error)) from None
            try:
                process.wait(max(0.0, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                how = f"was still running when the section's {self.seconds} s were over"
            else:
                how = f"ended with {process.returncode}" if process.returncode != 0 else None
            finally:
                end(process)
            output.seek(0)
            printed = output.read()
        if how:
            raise CommandFailed(command, how, "\n".join(printed.splitlines()[-LAST_LINES:]))
        return printed

    def report(self, words, option="--json="):
        """What a command prints, and the JSON that it writes to the file after `option`."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report"
            printed = self.run(words, [f"{option}{file}"])
            try:
                return printed, json.loads(file.read_text())
            except (OSError, json.JSONDecodeError) as error:
                raise CommandFailed(self.ran[-1], "wrote no report", f"{printed}{error}") from None


def end(process):
    """Ends a command and all that it started, if it has not ended by itself."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
