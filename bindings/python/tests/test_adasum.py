"""The adaptive sum, compared with the formula of its paper, and used to train."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import elastic
from conftest import Job


def adasum_of_two(a: Any, b: Any) -> Any:
    return (1 - a @ b / (2 * (a @ a))) * a + (1 - a @ b / (2 * (b @ b))) * b


def adasum() -> None:
    elastic.init()
    n, rank = elastic.size(), elastic.rank()
    for size in (1, 7, 1001, 100_000):
        vectors = [np.random.default_rng(each).normal(0.3, 1, size) for each in range(n)]
        (data, group) = (vectors[rank].copy(), [vectors[rank].copy(), 3 * vectors[rank]])
        # All workers are on one host, which is averaged.
        average = vectors[rank].copy()
        elastic.allreduce(average, elastic.HIERARCHICAL_ADASUM)
        np.testing.assert_allclose(average, np.mean(vectors, axis=0), rtol=1e-12, atol=1e-12)
        elastic.allreduce(data, elastic.ADASUM)
        elastic.grouped_allreduce(group, elastic.ADASUM)
        while len(vectors) > 1:
            if len(vectors) & len(vectors) - 1:  # no power of two: the first ones, in pairs
                surplus = len(vectors) - 2 ** (len(vectors).bit_length() - 1)
                firsts = [adasum_of_two(*vectors[2 * i : 2 * i + 2]) for i in range(surplus)]
                vectors = firsts + vectors[2 * surplus :]
                continue
            vectors = [adasum_of_two(*pair) for pair in zip(vectors[::2], vectors[1::2])]
        np.testing.assert_allclose(data, vectors[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(group[0], data, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(group[1], 3 * data, rtol=1e-12, atol=1e-12)
    with pytest.raises(elastic.InvalidArgumentError, match="Adasum takes .* and this is i64"):
        elastic.allreduce(np.arange(3), elastic.ADASUM)
    elastic.shutdown()


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_adasum(job: Job, workers: int) -> None:
    job(workers, adasum)


IDS, DENSE = 40, 5


def distance(op: elastic.ReduceOp, steps: int) -> float:
    """Trains a dense layer and a table of which each worker sees other rows, and returns how far from
    the right weights they are. The workers agree on the gradient of the layer and have nothing in
    common in that of the table."""
    n, rank = elastic.size(), elastic.rank()
    random = np.random.default_rng(1)
    right_weights, right_table = random.normal(size=DENSE), random.normal(size=IDS)
    weights, table = np.zeros(DENSE), np.zeros(IDS)
    for step in range(steps):
        random = np.random.default_rng((1, step, rank))
        x, ids = random.normal(size=(32, DENSE)), random.choice(np.arange(rank, IDS, n), 32)
        error = x @ (weights - right_weights) + table[ids] - right_table[ids]
        gradients = error @ x / 32, np.zeros(IDS)
        np.add.at(gradients[1], ids, error / 8)
        elastic.grouped_allreduce(gradients, op)
        weights -= 0.7 * gradients[0]
        table -= 0.7 * gradients[1]
    return float(np.square(weights - right_weights).sum() + np.square(table - right_table).mean())


def train() -> None:
    elastic.init()
    found = {op: distance(op, 10) for op in (elastic.SUM, elastic.AVERAGE, elastic.ADASUM)}
    print(found)
    assert found[elastic.SUM] > 1000, "the step is too long where the workers agree"
    assert found[elastic.AVERAGE] > 0.1, "and the average's too short where they do not"
    assert found[elastic.ADASUM] < 0.01
    elastic.shutdown()


def test_trains_where_neither_sum_nor_average_does(job: Job) -> None:
    print(job(4, train))
