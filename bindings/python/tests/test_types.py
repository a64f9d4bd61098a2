"""The types that checkers and editors see."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(os.environ["CHECKOUT"])
PACKAGE = ROOT / "bindings" / "python"


def test_stub_is_that_of_the_extension_module() -> None:
    spec = importlib.util.spec_from_file_location("make_stub", PACKAGE / "make_stub.py")
    assert spec is not None and spec.loader is not None
    make_stub = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_stub)
    assert make_stub.stub() == (PACKAGE / "elastic" / "_core.pyi").read_text(), (
        "bindings/python/elastic/_core.pyi is not that of the module: install the package and run "
        "bindings/python/make_stub.py"
    )


def mypy(*arguments: str | pathlib.Path) -> str:
    pytest.importorskip("mypy")
    command: list[str | pathlib.Path] = [sys.executable, "-m", "mypy", "--config-file", PACKAGE / "pyproject.toml"]
    command += arguments
    checked = subprocess.run(
        command,
        cwd=pathlib.Path(__file__).parent,
        env={**os.environ, "MYPYPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return str(checked.stdout) + str(checked.stderr)


def test_package_examples_and_tests_are_typed() -> None:
    # Not those of PyTorch, which they import only where it is: its names are no types there.
    here = pathlib.Path(__file__).parent
    skipped = 'importorskip("torch")'
    tests = [
        test
        for test in sorted(here.glob("*.py"))
        if test.name in ("test_documents.py", "test_types.py") or skipped not in test.read_text()
    ]
    examples = sorted((ROOT / "examples").rglob("*.py"))
    programs = [PACKAGE / "make_stub.py", ROOT / "benchmarks" / "python" / "overhead.py"]
    output = mypy(PACKAGE / "elastic", *programs, *examples, *tests)
    assert "Success" in output, output


def test_results_are_typed(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import array\n"
        "import numpy as np\n"
        "import elastic\n"
        "reveal_type(elastic.allreduce(np.ones(3)))\n"
        "reveal_type(elastic.allreduce(array.array('d', [1])))\n"
        "reveal_type(elastic.allreduce(3))\n"
        "reveal_type(elastic.allreduce(0.5))\n"
        "reveal_type(elastic.Sampler(3).next(1))\n"
        "elastic.allreduce('text')\n"
        "elastic.allreduce([1.0])\n"
        "reveal_type(elastic.TimeoutError)\n"
        "reveal_type(elastic.jax.allreduce)\n"
    )
    output = mypy(program)
    lines = [line.split(":", 1)[1] for line in output.splitlines() if ".py:" in line]
    for line, expected in (
        (4, "Contributors"),
        (5, "Contributors"),
        (6, '"int"'),
        (7, '"float"'),
        (8, "numpy.ndarray"),
        (9, "error: No overload variant"),
        (10, "error: No overload variant"),
        (11, "elastic.errors.TimeoutError"),
        (12, "def ("),
    ):
        assert any(text.startswith(f"{line}:") and expected in text for text in lines), output
    assert not any("does not explicitly export" in text for text in lines), output
