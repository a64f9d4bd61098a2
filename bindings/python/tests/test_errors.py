"""Exceptions on their way through the library, and from one process to another."""

from __future__ import annotations

import copy
import os
import pathlib
import pickle
import sys
from collections.abc import Callable

import numpy as np
import pytest

import elastic
from conftest import Job


class Loads:
    """An object of the state whose `load` does what it was told."""

    def __init__(self, load: Callable[[], None] = lambda: None) -> None:
        self._load = load

    def save(self) -> bytes:
        return b"saved"

    def load(self, saved: bytes) -> None:
        self._load()


def raises(error: BaseException) -> Callable[[], None]:
    def load() -> None:
        raise error

    return load


def test_exceptions_of_load_are_not_lost(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "checkpoint"
    elastic.State(part=Loads()).save_to(path)
    for error in (ValueError("too old"), MemoryError(), elastic.MismatchError("unlike")):
        with pytest.raises(elastic.InvalidArgumentError, match="'part'") as caught:
            elastic.State(part=Loads(raises(error))).load_from(path)
        assert caught.value.__cause__ is error
    for end in (KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(end)) as ended:
            elastic.State(part=Loads(raises(end))).load_from(path)
        assert ended.value is end


def refuses_to_load() -> None:
    elastic.init()
    second = elastic.rank() == 1
    error = ValueError("too old")
    state = elastic.State(part=Loads(raises(error) if second else lambda: None))
    with pytest.raises(elastic.MismatchError, match="too old") as caught:
        elastic.run(state, lambda state: None)
    assert caught.value.__cause__ is (error if second else None)


def never_runs() -> None:
    elastic.init()
    with pytest.raises(elastic.MismatchError, match="called barrier"):
        if elastic.rank() == 1:
            elastic.barrier()
        else:
            elastic.run(elastic.State(step=1), lambda state: None)


def saves_at_random() -> None:
    class Random(Loads):
        def save(self) -> bytes:
            return os.urandom(4)

    elastic.init()
    with pytest.raises(elastic.MismatchError, match="cannot be made the same"):
        elastic.run(elastic.State(part=Random()), lambda state: None)


@pytest.mark.parametrize("program", [refuses_to_load, never_runs, saves_at_random])
def test_a_mismatch_is_one_on_every_rank(job: Job, program: Callable[[], None]) -> None:
    output = job(3, program, "--max-restarts", "0", succeeds=False)
    assert "Traceback" not in output, output


def texts_without_bytes() -> None:
    elastic.init()
    text = b"caf\xe9".decode("utf-8", "surrogateescape")
    error = ValueError(text)

    class Saves(Loads):
        def save(self) -> bytes:
            raise error

    with pytest.raises(ValueError) as caught:
        elastic.State(part=Saves()).save_to("nowhere")
    assert caught.value is error

    class Unprintable(Exception):
        def __str__(self) -> str:
            raise OSError("no text")

    for thrown in (error, Unprintable()):
        with pytest.raises(type(thrown)) as left:
            elastic.run(elastic.State(step=1), lambda state, thrown=thrown: raises(thrown)())  # type: ignore[misc]
        assert left.value is thrown
        break  # the worker has left the job


def test_exceptions_whose_text_has_no_bytes(job: Job) -> None:
    output = job(1, texts_without_bytes, "--max-restarts", "0", succeeds=False)
    assert "Traceback" not in output, output


def unprintable() -> None:
    class Unprintable(elastic.Error):
        def __init__(self) -> None:
            pass

        def __str__(self) -> str:
            raise OSError("no text")

    elastic.init()
    with pytest.raises(Unprintable):
        elastic.run(elastic.State(step=1), lambda state: raises(Unprintable())())


def test_exceptions_without_text(job: Job) -> None:
    output = job(1, unprintable, "--max-restarts", "0", succeeds=False)
    assert "Traceback" not in output, output


def test_names_of_files_are_bytes(tmp_path: pathlib.Path) -> None:
    state = elastic.State(weights=np.ones(3))
    for name in (b"caf\xe9", os.fsdecode(b"caf\xe9 2"), pathlib.Path("plain")):
        path = os.path.join(tmp_path, os.fsdecode(name))
        state.save_to(os.fsencode(path) if isinstance(name, bytes) else path)
        assert state.load_from(path)
        assert os.path.exists(path)


def test_errors_can_be_copied_and_pickled() -> None:
    with pytest.raises(elastic.NotInitializedError) as caught:
        elastic.rank()
    for error in (caught.value, elastic.EvictedError("gone", 2, 7)):
        for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
            assert type(other) is type(error) and str(other) == str(error)
            assert (other.peer, other.generation) == (error.peer, error.generation)


def test_an_entry_is_added_once() -> None:
    weights = np.ones(3)
    with pytest.raises(elastic.InvalidArgumentError, match="'b' is the same object as 'a'"):
        elastic.State(a=weights, b=weights)
    elastic.State(a=1, b=1)
