"""What is done with gradients on their way: compression, batches, the check for NaN and Inf."""

from __future__ import annotations

import json
import os
import signal
import tempfile

import numpy as np
import pytest

import elastic
from conftest import Job


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


def test_a_step_with_nan_is_skipped_by_all(job: Job) -> None:
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


def test_nan_is_an_error_that_names_the_rank(job: Job) -> None:
    job(2, nan_is_an_error, ELASTIC_NON_FINITE="error")


def compressed() -> None:
    elastic.init()
    ranks = elastic.size()
    for form in ("none", "f16", "bf16", "int8", "two_bit:1", "top_k:0.25"):
        compressor = elastic.GradientCompressor(form)
        assert compressor.kind == form.split(":")[0]
        gradient = np.zeros(64, np.float32)
        gradient[::8] = 2.0 * (elastic.rank() + 1)
        sent = gradient.copy()
        contributors = compressor.allreduce("weights", gradient)
        assert len(contributors) == ranks
        kept, whole = compressor.residual("weights").copy(), sent
        assert len(kept) == (0 if form == "none" else 64)
        if len(kept):  # nothing is lost: what did not arrive is kept
            elastic.grouped_allreduce([kept, whole])
            assert np.allclose(gradient + kept, whole, atol=0.02), (form, gradient, kept)
        alike = elastic.allgather(gradient.reshape(1, -1)).values
        assert (alike == gradient).all()
    assert compressor.total.tensors == 256 and compressor.latest.encoded < 256
    compressor.send_whole()
    gradient[:] = 0
    loss = np.ones(2, np.float32)
    compressor.grouped_allreduce({"weights": gradient, "loss": loss}, whole=["loss"])
    assert (loss == ranks).all() and compressor.latest.residual_norm == 0
    compressor.rescale((0.1, 32), (0.2, 64))
    compressor.reset()
    with pytest.raises(elastic.InvalidArgumentError, match="top_k:RATIO"):
        elastic.GradientCompressor("top_q")
    with pytest.raises(elastic.InvalidArgumentError, match="whole names 'lost'"):
        compressor.grouped_allreduce({"weights": gradient}, whole=["lost"])
    with pytest.raises(elastic.InvalidArgumentError):
        compressor.allreduce("doubles", np.zeros(4))
    elastic.shutdown()
    with pytest.raises(elastic.NotInitializedError):
        compressor.allreduce("weights", gradient)


def test_compressed_sums_and_what_is_kept(job: Job) -> None:
    job(2, compressed)


def option_chooses_the_compression() -> None:
    elastic.init(compression="int8")
    assert elastic.GradientCompressor().kind == "int8"
    elastic.shutdown()


def test_the_option_chooses_the_compression(job: Job) -> None:
    job(1, option_chooses_the_compression)


def trains_in_virtual_batches() -> None:
    """Four virtual workers; a worker dies as it computes one of them."""
    elastic.init()
    data = np.random.default_rng(7).normal(size=(96, 3)).astype(np.float32)
    weights = np.zeros(3, np.float32)
    gradient = np.zeros(3, np.float32)
    sampler = elastic.Sampler(len(data), seed=5)
    batches = elastic.GlobalBatch(sampler, 24, policy="reproducible", virtual_workers=4)
    optimizer = elastic.MomentumSgd([weights], momentum=0.5)
    state = elastic.State(weights=weights, sampler=sampler, batches=batches, optimizer=optimizer)
    dies = "DIES" in os.environ and elastic.rank() == 1

    def add_gradients(part: elastic.VirtualBatch) -> None:
        if dies and state.commits == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        noise = part.random.generator().normal() + part.random.uniform()
        gradient[:] += (weights - data[part.samples]).sum(axis=0) + np.float32(noise)

    def train(state: elastic.State) -> None:
        while not sampler.finished(2):
            gradient[:] = 0
            total = batches.sum([gradient], add_gradients)
            assert total.samples == total.full_batch == 24
            optimizer.step([gradient], total.samples, 0.1)
            state.commit()

    elastic.run(state, train)
    alike = elastic.allgather(weights.reshape(1, -1)).values
    assert (alike == weights).all()
    if elastic.rank() == 0:
        print(f"weights {weights.tobytes().hex()} after {state.commits} steps", flush=True)
    elastic.shutdown()


def test_virtual_batches_give_the_same_bits_through_a_death(job: Job) -> None:
    def end(output: str) -> str:
        (line,) = [line for line in output.splitlines() if "weights " in line]
        return line[line.index("weights ") :]

    alone = end(job(1, trains_in_virtual_batches))
    assert "after 8 steps" in alone
    assert end(job(3, trains_in_virtual_batches, "--max-restarts", "0", DIES="1")) == alone


def exceptions_of_add_gradients() -> None:
    elastic.init()
    sampler = elastic.Sampler(16)
    with pytest.raises(elastic.InvalidArgumentError, match="one of per_worker, fixed_total"):
        elastic.GlobalBatch(sampler, 8, policy="fixed")
    with pytest.raises(elastic.InvalidArgumentError):
        elastic.GlobalBatch(sampler, 8, policy="fixed_total", virtual_workers=3)
    batches = elastic.GlobalBatch(sampler, 8)
    state = elastic.State(sampler=sampler, batches=batches)

    def train(state: elastic.State) -> None:
        def fails(part: elastic.VirtualBatch) -> None:
            raise KeyError(str(part.virtual_worker))

        with pytest.raises(KeyError, match="0"):
            batches.sum([np.zeros(2)], fails)
        state.commit()

    elastic.run(state, train)
    sums = np.array([6.0, 12.0])
    average = elastic.average_by_samples([sums], 3)
    assert average.samples == 3 and sums.tolist() == [2.0, 4.0]
    elastic.shutdown()


def test_exceptions_of_add_gradients_come_out(job: Job) -> None:
    job(1, exceptions_of_add_gradients)


def test_random_streams_are_functions_of_their_key() -> None:
    first, second = elastic.RandomStream(1, step=2), elastic.RandomStream(1, step=2)
    other = elastic.RandomStream(1, step=3)
    drawn = [first.bits() for _ in range(9)]
    assert drawn == [second.bits() for _ in range(9)] != [other.bits() for _ in range(9)]
    assert all(first.below(5) < 5 and 0 <= first.uniform() < 1 for _ in range(100))
    assert (first.generator().normal(size=4) != second.generator().normal(size=4)).any()


def adascale() -> None:
    elastic.init()
    generator = np.random.default_rng(elastic.rank())
    rate = elastic.LearningRate(elastic.Schedule.constant(0.1), 8, rule="adascale", policy="immediate")
    assert rate.rule == "adascale"
    noise = elastic.GradientNoise()
    for _ in range(5):
        gradient = generator.normal(1, 2, size=16).astype(np.float32) * 8
        moments = elastic.GradientNoise.moments([gradient], 8)
        elastic.grouped_allreduce([moments, gradient])
        noise.observe(moments, [gradient], 8)
        rate.observe(moments, [gradient])
        assert rate.step(16, 16).gamma == pytest.approx(noise.gain(2, 8))
    assert noise.estimates == 5 and 1 <= noise.gain(2, 8) <= 2
    copy = elastic.GradientNoise()
    copy.load(noise.save())
    assert copy.variance == noise.variance
    with pytest.raises(elastic.InvalidArgumentError, match="observe"):
        rate.step(16, 16)
    elastic.shutdown()


def test_adascale_measures_the_noise(job: Job) -> None:
    job(2, adascale)


def test_optimizers_take_the_steps_of_their_formulas() -> None:
    weights = [np.ones(3, np.float32), np.zeros((2, 2), np.float32)]
    gradient = [np.full(3, 4, np.float32), np.full((2, 2), 8, np.float32)]
    sgd = elastic.MomentumSgd(weights, momentum=0.5)
    sgd.step(gradient, 4, elastic.Rate(0.1))
    sgd.step(gradient, 4, 0.1)
    assert np.allclose(weights[0], 1 - 0.1 - 0.15) and np.allclose(weights[1], -0.2 - 0.3)
    assert np.allclose(sgd.momentum[:3], 1.5) and sgd.momentum.shape == (7,)
    adam = elastic.AdamW(weights, weight_decay=0)
    before = weights[0].copy()
    adam.step(gradient, 4, 0.01)
    assert np.allclose(weights[0], before - 0.01, atol=1e-6) and adam.variance.shape == (7,)
    with pytest.raises(elastic.InvalidArgumentError, match="float32"):
        elastic.AdamW([np.zeros(3)])
    with pytest.raises(elastic.InvalidArgumentError):
        sgd.step(gradient[:1], 4, 0.1)
    with pytest.raises(TypeError, match="incompatible"):
        sgd.step(gradient, 4, "fast")  # type: ignore[arg-type]


def diagnosed() -> None:
    elastic.init()
    state = elastic.State(step=0)

    def train(state: elastic.State) -> None:
        while state.step < 4:
            with elastic.loading_data():
                np.ones(1000).sum()
            elastic.allreduce(np.ones(10))
            state.step += 1
            state.commit()

    elastic.run(state, train)
    times = elastic.step_times()
    assert times.steps == 4 and times.sum.data > 0
    assert times.sum.total == pytest.approx(
        times.sum.own + times.sum.communication + times.sum.view_change
    )
    assert f"steps=4, latest={times.latest!r}" in repr(times)
    assert repr(times.latest).startswith("StepTime(data=")
    assert repr(elastic.Rate(0.5)) == "Rate(base=0.5, gamma=1.0, momentum_scale=1.0)"
    assert elastic.tuning().allreduce[0].algorithm
    assert elastic.tuning().inside_hosts.latency_us > 0
    change = elastic.last_view_change()
    assert change.generation == 0 or change.noticed <= change.installed
    assert elastic.timeline_file() == ""
    elastic.shutdown()


def test_diagnostics(job: Job) -> None:
    job(2, diagnosed)


def traced() -> None:
    elastic.init()
    with tempfile.TemporaryDirectory() as folder:
        with pytest.raises(elastic.Error, match="cannot write the timeline to /no/such/trace"):
            elastic.start_timeline("/no/such/trace.json")
        elastic.start_timeline(f"{folder}/trace.json")
        file = elastic.timeline_file()
        assert file == f"{folder}/trace.{elastic.worker_id():016x}.json"
        elastic.allreduce(np.ones(3, np.float32))
        elastic.stop_timeline()
        elastic.allreduce(np.ones(4, np.float32))
        with open(file, encoding="utf-8") as written:
            calls = [each for each in json.load(written) if each["name"] == "allreduce"]
        assert [each["args"]["bytes"] for each in calls] == [12]
        assert calls[0]["args"]["contributors"] == elastic.size()
    elastic.shutdown()


def test_timeline(job: Job) -> None:
    job(2, traced)
