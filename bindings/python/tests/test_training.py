"""Trainings that survive deaths, and what ends them."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

import elastic
from conftest import Job

SAMPLES = 512


def regression(die_at: int = -1) -> None:
    elastic.init()
    data = np.random.default_rng(1).normal(size=(SAMPLES, 4))
    target = data @ np.array([1.0, -2.0, 3.0, 0.5])
    weights = np.zeros(4)
    sampler = elastic.Sampler(SAMPLES, seed=3)
    state = elastic.State(weights=weights, sampler=sampler, steps=0, used=[])

    def train(state: elastic.State) -> None:
        while not sampler.finished(10):
            share = sampler.next(8)
            error = data[share] @ weights - target[share]
            sums = np.append(error @ data[share], len(share))
            if state.commits == die_at and elastic.rank() == 1 and "ELASTIC_RESTART" in os.environ:
                if os.environ["ELASTIC_RESTART"] == "0":
                    os.kill(os.getpid(), signal.SIGKILL)
            contributors = elastic.allreduce(sums)
            sampler.commit(contributors)
            weights[:] -= 0.1 * sums[:4] / sums[4]
            state.steps += 1
            state.used[:] = state.used[-3:] + [sums[4]]
            state.commit()

    outcome = elastic.run(state, train)
    assert outcome == elastic.RunOutcome.FINISHED
    assert np.abs(weights - [1, -2, 3, 0.5]).max() < 1e-6, weights
    everyone = elastic.allgather(weights.reshape(1, -1)).values
    assert (everyone == weights).all(), "replicas differ"
    assert state.commits == state.steps
    if elastic.rank() == 0:
        print(f"done after {state.steps} steps with {elastic.size()} workers")
    elastic.shutdown()


def test_trains(job: Job) -> None:
    assert "with 3 workers" in job(3, regression)


def regression_through_a_kill() -> None:
    regression(die_at=20)


def test_survives_a_kill_and_takes_a_replacement(job: Job) -> None:
    output = job(3, regression_through_a_kill)
    assert re.search(r"done after \d+ steps", output), output


def failing_body() -> None:
    elastic.init()
    state = elastic.State(step=0)
    first = elastic.rank() == 0

    def train(state: elastic.State) -> None:
        while state.step < 50:
            elastic.allreduce(np.ones(4))
            if state.step == 10 and first:
                raise ValueError("a defect of the program")
            state.step += 1
            state.commit()

    try:
        elastic.run(state, train)
    except ValueError as error:
        assert first and str(error) == "a defect of the program"
        names = [frame for frame in iter_frames(error)]
        assert "train" in names, names
        elastic.shutdown()
        sys.exit(0)
    assert not first and elastic.size() == 2
    print("went on")
    elastic.shutdown()


def iter_frames(error: BaseException) -> Iterator[str]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code.co_name
        trace = trace.tb_next


def test_an_exception_of_the_body_comes_out_and_the_others_go_on(job: Job) -> None:
    output = job(3, failing_body, "--max-restarts", "0")
    assert output.count("went on") == 2, output


def interrupts_itself() -> None:
    """Rank 0 sends itself what Ctrl-C sends while it waits for rank 1 in an allreduce."""
    import threading

    signalled = [0.0]

    def interrupt() -> None:
        time.sleep(0.5)  # into the wait; too early is no failure, only another place
        signalled[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    elastic.init()
    if elastic.rank() == 0:
        try:
            threading.Thread(target=interrupt, daemon=True).start()
            elastic.allreduce(np.ones(1_000_000))
        except KeyboardInterrupt:
            print(f"interrupted after {time.monotonic() - signalled[0]:.3f} s", flush=True)
            os._exit(0)
    time.sleep(60)  # until the launcher ends it


def test_ctrl_c_ends_a_wait_at_once(job: Job) -> None:
    process = job.start(2, interrupts_itself, "--max-restarts", "0")
    try:
        seen = ""
        assert process.stdout is not None
        for line in process.stdout:
            seen += line
            if "interrupted after" in line:
                break
        took = re.search(r"interrupted after ([0-9.]+) s", seen)
        assert took, seen
        assert float(took.group(1)) < 5, seen
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def forks() -> None:
    elastic.init()
    child = os.fork()
    if child == 0:
        try:
            elastic.allreduce(np.ones(3))
        except elastic.NotInitializedError:
            os._exit(7)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    # A child that runs to the interpreter's end leaves the job alone, too.
    subprocess.run([sys.executable, "-c", "import elastic"], check=True)
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    assert elastic.allreduce(1) == elastic.size()
    elastic.shutdown()


def test_forked_children_do_not_disturb_the_worker(job: Job) -> None:
    job(2, forks)


def checkpoint() -> None:
    elastic.init()
    path = os.environ["CHECKPOINT"]
    weights = np.zeros(5)
    state = elastic.State(weights=weights, step=0, note="begun")
    found = state.load_from(path)

    def train(state: elastic.State) -> None:
        end = state.step + 5
        while state.step < end:
            elastic.allreduce(np.ones(1))
            weights[:] += 1
            state.step += 1
            state.note = f"step {state.step}"
            state.commit()

    elastic.run(state, train)
    if elastic.rank() == 0:
        state.save_to(path)
        print(f"found {found}, at {state.step}, {state.note}, {weights[0]}")
    elastic.shutdown()


def test_checkpoints(job: Job, tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "state")
    assert "found False, at 5, step 5, 5.0" in job(2, checkpoint, CHECKPOINT=path)
    assert "found True, at 10, step 10, 10.0" in job(3, checkpoint, CHECKPOINT=path)


def wrong_states() -> None:
    import pytest

    elastic.init()
    with pytest.raises(elastic.InvalidArgumentError, match="is taken"):
        elastic.State(commit=np.ones(3))
    with pytest.raises(AttributeError, match="has no value 'stepp'"):
        elastic.State(step=0).stepp = 1
    with pytest.raises(AttributeError, match="'w' of the State is an array"):
        elastic.State(w=np.ones(3)).w = np.zeros(3)
    with pytest.raises(TypeError, match="object"):
        elastic.State(model=object())
    state = elastic.State(step=0)
    with pytest.raises(elastic.InvalidArgumentError, match="State.step is a builtins.set"):
        state.step = {1, 2}
    with pytest.raises(elastic.InvalidArgumentError, match=r"State.log\[0\] is a builtins.set"):
        elastic.State(log=[{1, 2}])
    with pytest.raises(elastic.InvalidArgumentError, match="State.name is an array of <U1"):
        elastic.State(name=np.str_("a"))
    with pytest.raises(TypeError, match="'kind' is the class elastic.*Sampler; give an object"):
        elastic.State(kind=elastic.Sampler)
    holds_itself: list[object] = []
    holds_itself += [holds_itself, holds_itself]
    with pytest.raises(elastic.InvalidArgumentError, match="State.step has .* 100 deep.* flat"):
        state.step = (holds_itself,)
    with pytest.raises(elastic.InvalidArgumentError, match="State.deep has .* holds itself"):
        elastic.State(deep={"a": holds_itself})
    with pytest.raises(TypeError, match="first|State and then"):
        elastic.run(wrong_states, state)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="work.wait"):
        elastic.Sampler(10).commit(elastic.allreduce_async("x", np.ones(1)))  # type: ignore[arg-type]
    with pytest.raises(elastic.InvalidArgumentError, match="more than 64 bits"):
        elastic.allreduce(2**70)
    elastic.shutdown()


def test_wrong_states_are_errors(job: Job) -> None:
    job(1, wrong_states)


def rates() -> None:
    import pytest

    elastic.init()
    rate = elastic.LearningRate(
        elastic.Schedule.constant(0.1).with_warm_up(64, 0.05), batch_reference=32, ramp_steps=2
    )
    state = elastic.State(rate=rate)

    def train(state: elastic.State) -> None:
        assert rate.step(32, 32).value == 0.05
        assert abs(rate.step(32, 32).value - 0.075) < 1e-12
        grown = [rate.step(64, 64).value for _ in range(3)]
        assert grown[0] < grown[1] and abs(grown[2] - 0.2) < 1e-12, grown
        state.commit()

    elastic.run(state, train)
    assert rate.progress == 256
    with pytest.raises(elastic.InvalidArgumentError, match="one of linear, sqrt, adascale"):
        elastic.LearningRate(elastic.Schedule.constant(0.1), 32, rule="cubic")
    with pytest.raises(elastic.InvalidArgumentError):
        elastic.Schedule.constant(-1.0)
    elastic.shutdown()


def test_learning_rates_follow_the_batch(job: Job) -> None:
    job(1, rates)


def trains_until_told() -> None:
    elastic.init()
    sums: list[float] = []  # the program's own list, which is in the State, too
    state = elastic.State(step=0, sums=sums, last=np.float64(0))

    def train(state: elastic.State) -> None:
        while True:
            sums.append(elastic.allreduce(1) / elastic.size())
            state.last = np.float64(state.step)
            state.step += 1
            state.commit()
            if state.step == 5 and elastic.rank() == 0:
                print("trains", flush=True)

    outcome = elastic.run(state, train)
    assert type(state.last) is np.float64 and state.sums is sums and len(sums) == state.step
    print(f"ended as {outcome.name}", flush=True)
    elastic.shutdown()


def wait_for_line(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if text in line:
            return seen
    raise AssertionError(seen)


def control(job: Job, name: str, *words: str) -> None:
    launcher = job.command(1, trains_until_told)[0]
    subprocess.run([launcher, "ctl", "--job", name, *words], check=True, timeout=30)


def test_stop_and_remove_make_run_return(job: Job) -> None:
    name = f"python-{os.getpid()}"
    process = job.start(3, trains_until_told, "--job", name)
    try:
        wait_for_line(process, "trains")
        control(job, name, "remove", "1")
        wait_for_line(process, "ended as REMOVED")
        control(job, name, "stop")
        rest, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert rest.count("ended as STOPPED") == 2, rest
    assert process.returncode == 0, rest


def test_plain_values_reach_a_replacement_in_place(job: Job) -> None:
    output = job(3, lists_through_a_kill)
    assert output.count("lists are alike") == 3, output


def lists_through_a_kill() -> None:
    elastic.init()
    history: list[float] = []
    state = elastic.State(history=history, best=np.float32(0), options={"a": [-(10**5000)]})
    start = elastic.generation()

    def train(state: elastic.State) -> None:
        while len(history) < 30 or elastic.size() < 3:
            if len(history) == 10 and elastic.rank() == 1 and os.environ["ELASTIC_RESTART"] == "0":
                os.kill(os.getpid(), signal.SIGKILL)
            history.append(float(elastic.allreduce(1)))
            state.best = np.float32(len(history))
            state.commit()

    elastic.run(state, train)
    assert state.history is history and start >= 0 and state.options == {"a": [-(10**5000)]}
    mine = np.array([sum(history), len(history), state.best])
    everyone = elastic.allgather(mine.reshape(1, -1)).values
    assert (everyone == mine).all(), everyone
    print("lists are alike")
    elastic.shutdown()
