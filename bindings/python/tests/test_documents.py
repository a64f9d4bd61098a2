"""The examples, and the code in the documents."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import LAUNCHER

ROOT = pathlib.Path(os.environ["CHECKOUT"])


def run(program: pathlib.Path) -> str:
    done = subprocess.run(
        [str(LAUNCHER), "-np", "2", sys.executable, str(program)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_regression_example() -> None:
    found = re.search(r"largest error ([0-9.e+-]+)", run(ROOT / "examples" / "regression.py"))
    assert found and float(found.group(1)) < 1e-3


def test_step_in_python_md_is_that_of_the_example() -> None:
    """Up to comments: the document shows a part of the example."""

    def code(text: str) -> list[str]:
        return [line.split("#")[0].strip() for line in text.splitlines() if line.split("#")[0].strip()]

    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.S)
    example = code((ROOT / "examples" / "regression.py").read_text())
    assert "\n".join(code(block)) in "\n".join(example)


def test_trainer_in_pytorch_md(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "pytorch.md").read_text(), re.S)
    program = tmp_path / "trainer.py"
    program.write_text(
        "import torch\n"
        "inputs = torch.randn(256, 64, generator=torch.Generator().manual_seed(1))\n"
        "dataset = torch.utils.data.TensorDataset(inputs, inputs[:, :10].argmax(1))\n"
        + block.replace("elastic.shutdown()\n", "")
        + "print('steps', state.commits)\nelastic.shutdown()\n"
    )
    assert "steps" in run(program)
