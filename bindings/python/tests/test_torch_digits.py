"""examples/torch_digits.py: through a kill and two joins no sample is lost or used twice, replicas
have the same bits, and the network is as good as after an undisturbed training."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from conftest import LAUNCHER

pytest.importorskip("torch")

DIGITS = pathlib.Path(os.environ["CHECKOUT"]) / "examples" / "torch_digits.py"
JOB = f"torch-digits-{os.getpid()}"
EPOCHS = 12
STEPS = EPOCHS * 23  # of 4 workers


@contextlib.contextmanager
def started(
    folder: pathlib.Path, launcher: tuple[str, ...] = (), program: tuple[str, ...] = ()
) -> Iterator[subprocess.Popen[str]]:
    """A job of four workers, which is ended after four minutes."""
    folder.mkdir()
    command = [str(LAUNCHER), "--job", JOB, "-np", "4", *launcher, sys.executable, str(DIGITS)]
    job = subprocess.Popen(
        [*command, "--epochs", str(EPOCHS), "--report", str(folder), *program],
        # The library chooses algorithms by measured times, and so the order in which ranks are added up.
        env={**os.environ, "OMP_NUM_THREADS": "1", "ELASTIC_ALGORITHM": "one_shot"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    limit = threading.Timer(240, job.terminate)
    limit.start()
    try:
        yield job
    finally:
        limit.cancel()
        job.terminate()
        job.wait(timeout=60)


def wait_for_line(job: subprocess.Popen[str], text: str) -> str:
    """Reads what the job writes up to a line with this text, and returns it."""
    assert job.stdout is not None
    seen = ""
    for line in job.stdout:
        seen += line
        if text in line:
            return seen
    raise AssertionError(seen)


def reports(job: subprocess.Popen[str], folder: pathlib.Path) -> list[dict[str, Any]]:
    """What the workers report at the end."""
    output, _ = job.communicate()
    assert job.returncode == 0, output
    return [json.loads(path.read_text()) for path in folder.glob("report-*.json")]


def test_digits_through_a_kill_and_two_joins(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "undisturbed"
    with started(folder) as job:
        undisturbed = reports(job, folder)[0]
    assert undisturbed["steps"] == STEPS

    folder = tmp_path / "disturbed"
    launcher = ("--min-np", "2", "--max-np", "8", "--max-restarts", "0")
    kill = ("--die-rank", "1", "--die-at-step", str(STEPS // 3))
    joins = ("--wait-after-step", str(STEPS * 6 // 10), "--wait-for", "5")
    with started(folder, launcher, kill + joins) as job:
        output = wait_for_line(job, "waits for 5 workers")
        assert "died of signal 9" in output
        add = [str(LAUNCHER), "ctl", "--job", JOB, "add", "2"]
        subprocess.run(add, check=True, timeout=30)
        disturbed = reports(job, folder)

    assert sorted(report["rank"] for report in disturbed) == [0, 1, 2, 3, 4]
    assert len({report["parameter_hash"] for report in disturbed}) == 1, disturbed
    assert len({report["steps"] for report in disturbed}) == 1, disturbed
    for report in [undisturbed, *disturbed]:
        assert report["epochs"] == EPOCHS, report
        assert report["samples_used_once"] == EPOCHS * report["samples_in_epoch"], report
        assert report["samples_missed"] == report["samples_used_twice"] == 0, report
    accuracy = disturbed[0]["test_accuracy"]
    assert accuracy >= undisturbed["test_accuracy"] - 0.01, (undisturbed, disturbed)
