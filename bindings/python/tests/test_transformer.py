"""examples/transformer.py: the loss falls through a kill, and replicas have the same bits."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import LAUNCHER

pytest.importorskip("torch")

TRANSFORMER = pathlib.Path(os.environ["CHECKOUT"]) / "examples" / "transformer.py"


@pytest.mark.parametrize(
    ("options", "workers"),
    [(["--max-restarts", "0"], 2), (["--min-np", "3", "--max-restarts", "1"], 3)],
    ids=["survivors", "replacement"],
)
def test_transformer_through_a_kill(options: list[str], workers: int) -> None:
    command = [str(LAUNCHER), "-np", "3", *options, sys.executable, str(TRANSFORMER)]
    done = subprocess.run(
        [*command, "--steps", "40", "--die-at", "10"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "worker 1 died of signal 9" in done.stdout, done.stdout
    ends = re.findall(
        r"loss ([0-9.]+) to ([0-9.]+) in 40 steps, (\d) workers, parameters ([0-9a-f]+)",
        done.stdout,
    )
    assert len(ends) == workers and {end[2] for end in ends} == {str(workers)}, done.stdout
    assert len({end[3] for end in ends}) == 1, f"replicas differ:\n{done.stdout}"
    before, after = float(ends[0][0]), float(ends[0][1])
    assert after < 0.75 * before, done.stdout
