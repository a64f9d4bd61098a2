"""Pytrees of JAX."""

from __future__ import annotations

import os
import pathlib
import re
import signal

import numpy as np
import pytest

import elastic
from conftest import Job, run_example

jax = pytest.importorskip("jax")
jnp = jax.numpy

ROOT = pathlib.Path(os.environ["CHECKOUT"])


def trees() -> None:
    import elastic.jax

    elastic.init()
    rank, size = elastic.rank(), elastic.size()
    tree = {"w": jnp.arange(6.0).reshape(2, 3) + rank, "b": (jnp.ones(3, jnp.bfloat16), 2), "n": 0.5}
    combined, contributors = elastic.jax.allreduce(tree)
    assert len(contributors) == size
    assert (combined["w"] == size * np.arange(6.0).reshape(2, 3) + sum(range(size))).all()
    assert combined["b"][0].dtype == jnp.bfloat16 and (combined["b"][0] == size).all()
    assert combined["b"][1] == 2 * size and combined["n"] == 0.5 * size
    assert isinstance(combined["w"], jax.Array) and (tree["w"][0, 0] == rank)
    averaged, _ = elastic.jax.allreduce(jnp.full(2, 1.0 + rank), elastic.AVERAGE)
    assert np.allclose(averaged, (size + 1) / 2)
    with pytest.raises(elastic.InvalidArgumentError, match="allreduce: op is 'avg'"):
        elastic.jax.allreduce(tree, "avg")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="call it on their results"):
        jax.jit(lambda x: elastic.jax.allreduce(x)[0])(jnp.ones(2))
    with pytest.raises(elastic.MismatchError):
        elastic.jax.allreduce([jnp.ones(2)] * (1 + rank))
    # An array of JAX cannot be written, though its DLPack does not say so.
    with pytest.raises(elastic.InvalidArgumentError, match="call elastic.jax.allreduce"):
        elastic.allreduce(jnp.ones(2))
    out = np.zeros(2, np.float32)
    elastic.allreduce(jnp.ones(2), out=out)
    assert (out == size).all()
    elastic.shutdown()


def test_trees_are_combined_as_one_unit(job: Job) -> None:
    job(2, trees)


def trees_through_a_kill() -> None:
    import elastic.jax

    elastic.init()
    params = elastic.jax.PyTree({"w": jnp.zeros(4, jnp.bfloat16), "steps": 0})
    state = elastic.State(params=params)

    def train(state: elastic.State) -> None:
        while params.value["steps"] < 20 or elastic.size() < 3:
            if elastic.rank() == 1 and os.environ["ELASTIC_RESTART"] == "0" and state.commits == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            total, contributors = elastic.jax.allreduce({"w": jnp.ones(4), "steps": 1})
            assert total["steps"] == len(contributors)
            params.value = {
                "w": params.value["w"] + total["w"] / len(contributors),
                "steps": params.value["steps"] + 1,
            }
            state.commit()

    elastic.run(state, train)
    assert (params.value["w"] == params.value["steps"]).all(), params.value
    print("trees are right", flush=True)
    elastic.shutdown()


def test_a_replacement_receives_the_tree(job: Job) -> None:
    output = job(3, trees_through_a_kill, timeout=120)
    assert output.count("trees are right") == 3, output


def test_example() -> None:
    output = run_example(ROOT / "examples" / "jax_regression.py")
    found = re.search(r"largest error ([0-9.e+-]+)", output)
    assert found and float(found.group(1)) < 1e-3, output
