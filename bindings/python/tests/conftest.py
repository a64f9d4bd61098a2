"""Jobs of real workers: a test names a function of its module, which every worker of a job calls."""

from __future__ import annotations

import hashlib
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

HERE = pathlib.Path(__file__).parent
LAUNCHER = pathlib.Path(sys.executable).with_name("elasticrun")

# A shell starts what is to run in the background with SIGINT ignored, which Python leaves so: a test that
# interrupts itself would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share", type=int, default=1, metavar="N", help="run one test of N, others for each commit"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    parts: int = config.getoption("--share")
    if parts == 1:
        return
    command = ["git", "-C", os.environ["CHECKOUT"], "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def in_share(item: pytest.Item) -> bool:
        digest = hashlib.sha256(f"{commit} {item.nodeid}".encode()).digest()
        return digest[0] % parts == 0

    config.hook.pytest_deselected(items=[item for item in items if not in_share(item)])
    items[:] = [item for item in items if in_share(item)]


class Job:
    """Starts jobs under elasticrun."""

    def command(self, workers: int, function: Callable[[], None], *options: str) -> list[str]:
        source = f"import {function.__module__} as m; m.{function.__name__}()"
        return [str(LAUNCHER), "-np", str(workers), *options, sys.executable, "-c", source]

    def start(
        self, workers: int, function: Callable[[], None], *options: str, **environment: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(workers, function, *options),
            cwd=HERE,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def __call__(
        self,
        workers: int,
        function: Callable[[], None],
        *options: str,
        succeeds: bool = True,
        timeout: float = 60,
        **environment: str,
    ) -> str:
        """Runs a job to its end, and returns what it wrote."""
        process = self.start(workers, function, *options, **environment)
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            output, _ = process.communicate(timeout=20)
            pytest.fail(f"the job took more than {timeout} s:\n{output}")
        if (process.returncode == 0) != succeeds:
            pytest.fail(f"the job ended with {process.returncode}:\n{output}")
        return output


def run_example(
    program: pathlib.Path, workers: int = 2, cwd: pathlib.Path | None = None
) -> str:
    """Runs a program as a job, and returns what it wrote."""
    done = subprocess.run(
        [str(LAUNCHER), "-np", str(workers), sys.executable, str(program)],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def job() -> Job:
    return Job()
