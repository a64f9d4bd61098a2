"""What is done with gradients on their way: the check for NaN and Inf."""

from __future__ import annotations

import numpy as np
import pytest

import elastic


def steps_with_nan() -> None:
    """Rank 1 contributes a NaN in the second of three steps."""
    elastic.init(non_finite="skip")
    gradient = np.zeros(8, np.float32)
    bias = np.zeros(2)
    check = elastic.FiniteCheck({"weight": gradient, "bias": bias})
    used = []
    for step in range(3):
        gradient[:] = 1
        bias[:] = np.nan if step == 1 and elastic.rank() == 1 else 1
        check.begin_step()
        check.before_sum()
        elastic.grouped_allreduce([gradient, bias])
        used.append(check.after_sum())
    assert used == [True, False, True], used
    elastic.shutdown()
    with pytest.raises(elastic.NotInitializedError):
        check.after_sum()


def test_a_step_with_nan_is_skipped_by_all(job) -> None:
    job(2, steps_with_nan)


def nan_is_an_error() -> None:
    elastic.init()
    check = elastic.FiniteCheck({"weight": np.zeros(3)})
    for of_rank_one in (1.0, np.inf):
        gradient = np.array([1, 1, of_rank_one if elastic.rank() == 1 else 1], np.float32)
        check.begin_step({"weight": gradient})  # a new array in each step
        check.before_sum()
        elastic.allreduce(gradient)
        if np.isfinite(of_rank_one):
            assert check.after_sum()
            continue
        with pytest.raises(elastic.NotFiniteError, match="gradient 'weight' of rank 1, element 2") as told:
            check.after_sum()
        assert told.value.peer == 1
    with pytest.raises(elastic.InvalidArgumentError, match="FiniteCheck: the gradient 'w' is not contig"):
        elastic.FiniteCheck({"w": np.zeros((4, 4))[:, 1]})
    with pytest.raises(TypeError):
        elastic.FiniteCheck([np.zeros(3)])  # type: ignore[arg-type]
    elastic.shutdown()


def test_nan_is_an_error_that_names_the_rank(job) -> None:
    job(2, nan_is_an_error, ELASTIC_NON_FINITE="error")
