"""The package's types."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")

ROOT = pathlib.Path(os.environ["CHECKOUT"])


def test_package_is_typed() -> None:
    pytest.importorskip("mypy")
    package = ROOT / "bindings" / "horovod"
    path = os.pathsep.join([str(ROOT / "bindings" / "python"), str(package)])
    command = [sys.executable, "-m", "mypy", "--config-file", package / "pyproject.toml"]
    checked = subprocess.run(
        [*command, package / "horovod"],
        cwd=pathlib.Path(__file__).parent,
        env={**os.environ, "MYPYPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "Success" in checked.stdout, checked.stdout + checked.stderr
