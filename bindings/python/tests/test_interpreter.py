"""The interpreter's end while threads are in the library, and other interpreters."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading

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
