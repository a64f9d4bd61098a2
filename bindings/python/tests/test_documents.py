"""The examples, and the code in the documents."""

from __future__ import annotations

import os
import pathlib
import re

import pytest

from conftest import run_example

ROOT = pathlib.Path(os.environ["CHECKOUT"])


def blocks(document: str) -> list[str]:
    """The programs in a document, in their order."""
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.S)


def test_regression_example() -> None:
    found = re.search(r"largest error ([0-9.e+-]+)", run_example(ROOT / "examples" / "regression.py"))
    assert found and float(found.group(1)) < 1e-3


def test_step_in_python_md_is_that_of_the_example() -> None:
    """Up to comments: the document shows a part of the example."""

    def code(text: str) -> list[str]:
        return [line.split("#")[0].strip() for line in text.splitlines() if line.split("#")[0].strip()]

    block = blocks("docs/python.md")[0]
    example = code((ROOT / "examples" / "regression.py").read_text())
    assert "\n".join(code(block)) in "\n".join(example)


def test_jax_in_python_md(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("jax")
    _, block, _ = blocks("docs/python.md")
    last = "elastic.shutdown()\n"
    assert block.endswith(last)
    program = tmp_path / "trainer.py"
    program.write_text(block.replace(last, "print(params.value['weights'][0])\n" + last))
    assert "2.99" in run_example(program)


def test_global_batch_in_python_md(tmp_path: pathlib.Path) -> None:
    """With the data of the example, as the document says."""
    *_, block = blocks("docs/python.md")
    example = (ROOT / "examples" / "regression.py").read_text()
    data, _, _ = example.partition("state = ")
    program = tmp_path / "trainer.py"
    program.write_text(
        f"{data}{block}\nelastic.run(state, train)\n"
        "print(f'largest error {abs(weights - wanted).max():.1e}')\nelastic.shutdown()\n"
    )
    errors = re.findall(r"largest error ([0-9.e+-]+)", run_example(program))
    assert len(errors) == 2 and all(float(error) < 1e-3 for error in errors), errors


def test_trainer_in_checkpoints_md(tmp_path: pathlib.Path) -> None:
    """Its second run goes on from the file of the first."""
    (block,) = blocks("docs/checkpoints.md")
    program = tmp_path / "trainer.py"
    program.write_text(block)
    assert run_example(program, cwd=tmp_path) == ""
    assert "goes on after step 300" in run_example(program, workers=3, cwd=tmp_path)


def test_trainer_in_readme_through_a_kill(tmp_path: pathlib.Path) -> None:
    """As it stands there, but for a worker that dies once, between sample and sum."""
    (block,) = blocks("README.md")
    assert sum(bool(line.strip()) for line in block.splitlines()) <= 25
    call = "        contributors = elastic.allreduce(sums)"
    assert call in block
    dies = (
        "        import os, signal\n"
        "        if state.commits == 20 and elastic.rank() == 1:\n"
        "            if os.environ['ELASTIC_RESTART'] == '0':\n"
        "                os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    program = tmp_path / "trainer.py"
    program.write_text(block.replace(call, dies + call))
    output = run_example(program, workers=3)
    ends = re.findall(r"weights (\[.*?\])", output, re.S)
    assert len(ends) >= 2 and len(set(ends)) == 1, output
    assert [round(float(end)) for end in ends[0].strip("[]").split()] == list(range(8)), output


def test_programs_in_groups_md(tmp_path: pathlib.Path) -> None:
    whole, rule, messages = blocks("docs/groups.md")
    last = "elastic.shutdown()\n"
    assert whole.endswith(last)
    program = tmp_path / "groups.py"
    program.write_text(whole.replace(last, f"{rule}assert group.allreduce(1) == 2\n{last}"))
    output = run_example(program)
    assert output.count("sum 3.0 in per host") == 2, output
    program.write_text(messages)
    output = run_example(program, workers=3)
    for rank in range(3):
        assert f"rank {rank} got 500 numbers of rank {(rank + 2) % 3}.0" in output, output


def test_every_program_in_the_documents_has_a_test() -> None:
    """A new one needs a test of its own here."""
    documents = ("python", "pytorch", "checkpoints")
    assert [len(blocks(f"docs/{name}.md")) for name in documents] == [3, 4, 1]


@pytest.mark.parametrize("number", range(3))
def test_trainers_in_pytorch_md(number: int, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    trainers = [block for block in blocks("docs/pytorch.md") if "elastic.torch.run(" in block]
    assert len(trainers) == 3
    program = tmp_path / "trainer.py"
    program.write_text(
        "import torch\n"
        "inputs = torch.randn(256, 64, generator=torch.Generator().manual_seed(1))\n"
        "dataset = torch.utils.data.TensorDataset(inputs, inputs[:, :10].argmax(1))\n"
        + trainers[number].replace("elastic.shutdown()\n", "")
        + "print('steps', state.commits)\nelastic.shutdown()\n"
    )
    assert "steps" in run_example(program, cwd=tmp_path)
    assert (tmp_path / "model.pt").exists() == ("export_to" in trainers[number])


def test_process_group_in_pytorch_md(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    (block,) = [block for block in blocks("docs/pytorch.md") if "init_process_group" in block]
    program = tmp_path / "group.py"
    program.write_text(block)
    assert "sum [2.0, 2.0, 2.0] of 2" in run_example(program)
