"""The interpreter's end while threads are in the library, and other interpreters."""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import elastic
from conftest import Job


def ends_while_a_thread_calls() -> None:
    elastic.init()
    called = threading.Event()

    def call() -> None:
        while True:
            elastic.allreduce(np.ones(1000))
            called.set()

    threading.Thread(target=call, daemon=True).start()
    called.wait()


def shuts_down_while_a_thread_calls() -> None:
    elastic.init()
    called = threading.Event()

    def call() -> None:
        while True:
            elastic.allreduce_async("bg", np.ones(10)).wait()
            called.set()

    threading.Thread(target=call, daemon=True).start()
    called.wait()
    elastic.shutdown()


def ends_while_a_thread_trains() -> None:
    elastic.init()
    trains = threading.Event()

    def train(state: elastic.State) -> None:
        while True:
            trains.set()
            for _ in range(10**6):
                pass

    state = elastic.State(step=0)
    threading.Thread(target=lambda: elastic.run(state, train), daemon=True).start()
    trains.wait()


@pytest.mark.parametrize("repetition", range(5))
def test_daemon_threads_do_not_abort_the_interpreters_end(job: Job, repetition: int) -> None:
    for workers, program in (
        (1, ends_while_a_thread_calls),
        (2, ends_while_a_thread_calls),
        (1, shuts_down_while_a_thread_calls),
        (1, ends_while_a_thread_trains),
    ):
        completes = program is not ends_while_a_thread_trains  # that one leaves its training
        output = job(workers, program, "--max-restarts", "0", succeeds=completes)
        assert "terminate called" not in output and "signal" not in output, output
        assert "Fatal Python error" not in output, output


def outlive(process: int) -> None:
    """Waits until a process has ended."""
    while pathlib.Path(f"/proc/{process}").exists():
        time.sleep(0.01)


def ends_without_shutdown() -> None:
    """Rank 1 ends when rank 0 has."""
    elastic.init()
    first = np.array([os.getpid()])
    elastic.broadcast(first, 0)
    if elastic.rank() == 1:
        outlive(int(first[0]))


def test_an_end_without_shutdown_is_an_end(job: Job) -> None:
    output = job(2, ends_without_shutdown)
    assert "elasticrun" not in output, output


def fails_without_shutdown() -> None:
    elastic.init()
    elastic.barrier()
    if elastic.rank() == 1:
        raise ValueError("of one worker")
    while len(elastic.barrier()) > 1:
        pass


def test_an_exception_is_no_end(job: Job) -> None:
    output = job(2, fails_without_shutdown, "--max-restarts", "0")
    assert "worker 1 exited with code 1" in output and "ended early" not in output, output


def ends_before_the_others() -> None:
    elastic.init()
    elastic.barrier()
    if elastic.rank() == 1:
        return
    while len(elastic.barrier()) > 1:
        pass


def ends_with_work_of_its_own() -> None:
    """The others never start it."""
    elastic.init()
    elastic.barrier()
    if elastic.rank() == 1:
        elastic.allreduce_async("own", np.ones(3))
        return
    while len(elastic.barrier()) > 1:
        pass


def test_an_early_end_is_one_also_without_shutdown(job: Job) -> None:
    for program, how in (
        (ends_before_the_others, "ended early: .* the others went on"),
        (ends_with_work_of_its_own, "exited with code 0 in the middle of the job"),
    ):
        output = job(2, program, "--max-restarts", "0")
        assert re.search(f"began with 2 workers and ended with 1: worker 1 {how}", output), output


def test_a_subinterpreter_cannot_load_it() -> None:
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            interpreters = importlib.import_module(name)
            break
        except ImportError:
            continue
    else:
        pytest.skip("this Python makes no other interpreters")
    program = f"""
import {name} as interpreters
import numpy, elastic
elastic.init()
other = interpreters.create({"'legacy'" if name == "_interpreters" else ""})
try:
    failure = interpreters.run_string(other, "import elastic")
except interpreters.RunFailedError as error:
    failure = error
assert "subinterpreter" in str(failure), failure
assert elastic.allreduce(1.0, elastic.SUM) == 1.0
elastic.allreduce(numpy.ones(1))
elastic.Sampler(3)
elastic.shutdown()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
