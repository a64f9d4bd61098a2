"""The example, and the code and the tables in docs/horovod.md."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("horovod")

from conftest import run_example  # noqa: E402

from horovod.common import environment  # noqa: E402
from horovod.runner.options import OPTIONS  # noqa: E402

ROOT = pathlib.Path(os.environ["CHECKOUT"])
TEXT = (ROOT / "docs" / "horovod.md").read_text()
EXAMPLE = ROOT / "examples" / "horovod_digits.py"
#: What the programs in the document find in a script.
BEFORE = """
import torch
torch.manual_seed(1)
dataset = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
model = torch.nn.Linear(8, 1)
"""


def accuracy_of(output: str) -> float:
    found = re.search(r"accuracy ([0-9.]+) with 2 workers", output)
    assert found, output
    return float(found.group(1))


def test_example_has_no_word_of_elastic() -> None:
    assert "elastic" not in EXAMPLE.read_text()


def test_example_under_elasticrun() -> None:
    assert accuracy_of(run_example(EXAMPLE)) > 0.8


def test_example_under_horovodrun() -> None:
    horovodrun = pathlib.Path(sys.executable).with_name("horovodrun")
    done = subprocess.run(
        [horovodrun, "-np", "2", sys.executable, EXAMPLE],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and accuracy_of(done.stdout) > 0.8, done


def programs() -> list[str]:
    return re.findall(r"```python\n(.*?)```", TEXT, re.S)


@pytest.mark.parametrize("number", range(3))
def test_programs_in_horovod_md(number: int, tmp_path: pathlib.Path) -> None:
    found = programs()
    assert len(found) == 3
    program = tmp_path / "script.py"
    guarded = f"def main():\n    pass\n{BEFORE}{found[number]}print('ended')\n"
    program.write_text(guarded)
    if "horovod.run(" in found[number]:
        done = subprocess.run(
            [sys.executable, program], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0 and "ended" in done.stdout, done
    else:
        assert run_example(program).count("ended") == 2


def test_tables_are_complete() -> None:
    for option in OPTIONS:
        for flag in option.flags:
            assert f"`{flag}`" in TEXT, f"docs/horovod.md lacks {flag}"
    for variable in [*environment.OPTIONS, *environment.PLACES]:
        assert f"`{variable}`" in TEXT, f"docs/horovod.md lacks {variable}"
