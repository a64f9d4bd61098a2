"""The state that joiners receive, and ``run``."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from elastic import _core, canonical
from elastic._core import AdamW, Context, LearningRate, MomentumSgd, RunOutcome, Sampler
from elastic.errors import InvalidArgumentError

_PLAIN = (bool, int, float, str, bytes, type(None))
#: The entry with all plain values. No keyword has this name.
_VALUES = "plain values"


def _is_plain(value: Any) -> bool:
    """Whether a value becomes an attribute of the State, instead of memory that is written into."""
    if type(value) in (list, tuple):
        return all(_is_plain(item) for item in value)
    if type(value) is dict:
        return all(_is_plain(key) and _is_plain(item) for key, item in value.items())
    return type(value) in _PLAIN or isinstance(value, np.generic)


def _is_memory(entry: Any) -> bool:
    """Whether an entry may be a tensor, which the C++ part then looks at."""
    if hasattr(entry, "__dlpack__") or hasattr(entry, "__array_interface__"):
        return True
    try:
        memoryview(entry).release()
    except TypeError:
        return False
    return True


def _load_into(current: Any, loaded: Any) -> Any:
    """``loaded``, in the lists and dicts that ``current`` has: the program may hold them, too."""
    if type(current) is list and type(loaded) is list:
        kept = current[: len(loaded)]
        current[:] = [_load_into(own, new) for own, new in zip(kept, loaded)] + loaded[len(kept) :]
        return current
    if type(current) is dict and type(loaded) is dict:
        merged = {key: _load_into(current.get(key), new) for key, new in loaded.items()}
        current.clear()
        current.update(merged)
        return current
    return loaded


def _saving(name: str, entry: Any) -> Callable[[], bytes]:
    """``entry.save``, which has to return bytes."""

    def save() -> bytes:
        saved = entry.save()
        if not isinstance(saved, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"State: save() of entry '{name}' returned a {type(saved).__name__}; it has to "
                "return bytes, for example those of elastic.canonical.dumps"
            )
        return bytes(saved)

    return save


class _Values:
    """The plain values of a State."""

    def __init__(self) -> None:
        self.current: dict[str, Any] = {}

    def save(self) -> bytes:
        return canonical.dumps(self.current, "State")

    def load(self, saved: bytes) -> None:
        loaded = canonical.loads(saved)
        if loaded.keys() != self.current.keys():
            raise InvalidArgumentError(
                f"the State has the values {sorted(self.current)}, and what it is to load has "
                f"{sorted(loaded)}"
            )
        _load_into(self.current, loaded)


def _with_saved_types(current: Any, saved: Any) -> Any:
    """``current``, what PyTorch's optimizers made of ``saved``. They load tensors in the type of the
    parameter, which is not that of all: NAdam and ASGD have numbers of their own in float32. Those
    are taken as they were saved, in the dicts that ``state_dict`` shares with the optimizer."""
    is_tensor = sys.modules["torch"].is_tensor
    if isinstance(current, dict) and isinstance(saved, dict):
        for key in current.keys() & saved.keys():
            current[key] = _with_saved_types(current[key], saved[key])
    elif isinstance(current, (list, tuple)) and isinstance(saved, (list, tuple)):
        return type(current)(map(_with_saved_types, current, saved))
    elif is_tensor(current) and is_tensor(saved) and current.dtype != saved.dtype:
        return saved.to(current.device)
    return current


class _WithStateDict:
    """An object that knows its state as a dict, as PyTorch's optimizers and schedulers do."""

    def __init__(self, name: str, entry: Any) -> None:
        self._name = name
        self._entry = entry

    def save(self) -> bytes:
        return canonical.dumps(self._entry.state_dict(), self._name)

    def load(self, saved: bytes) -> None:
        loaded = canonical.loads(saved)
        self._entry.load_state_dict(loaded)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(self._entry, torch.optim.Optimizer):
            _with_saved_types(self._entry.state_dict(), loaded)


class _OnDevice:
    """A tensor of PyTorch that lies on a device. It comes to the host when a worker joins, and for
    checkpoints, not with each commit."""

    def __init__(self, name: str, tensor: Any) -> None:
        self._name = name
        self._tensor = tensor.detach()

    def save(self) -> bytes:
        return canonical.dumps(self._tensor, self._name)

    def load(self, saved: bytes) -> None:
        loaded = canonical.loads(saved)
        own = self._tensor
        if (loaded.shape, loaded.dtype) != (own.shape, own.dtype):
            raise InvalidArgumentError(
                f"State: entry '{self._name}' has the shape {tuple(own.shape)} and the type "
                f"{own.dtype}, and what it is to load has {tuple(loaded.shape)} and {loaded.dtype}"
            )
        own.copy_(loaded)


class State:
    """The state that a joiner must receive to go on as if it had been there from the start.

    ``State(weights=weights, sampler=sampler, step=0)`` takes, by name:

    - arrays and tensors: written in place, so they must stay where they are. PyTorch's may lie on a
      CUDA device, on all workers alike; they are copied to the host when a worker joins;
    - a Sampler, GlobalBatch, LearningRate, GradientNoise, MomentumSgd or AdamW;
    - objects with ``save() -> bytes`` and ``load(bytes)``, and optionally
      ``set_members(members, self)``. Equal states must give equal bytes: pickles do not;
    - objects with ``state_dict()`` and ``load_state_dict(dict)``, such as learning-rate schedulers;
    - plain values (bool, int, float, str, bytes, None; lists, tuples and dicts of them): they become
      attributes of the State, ``state.step += 1``.

    All workers give the same entries in the same order. Belongs to the thread that calls ``run``.
    """

    def __init__(self, *unnamed: Any, **entries: Any) -> None:
        if unnamed:
            raise InvalidArgumentError(
                f"State: give each entry a name, as in State(model=model); the first of "
                f"{len(unnamed)} without one is a {type(unnamed[0]).__qualname__}"
            )
        object.__setattr__(self, "_core", _core._State())
        object.__setattr__(self, "_values", _Values())
        object.__setattr__(self, "_added", {})
        object.__setattr__(self, "_has_values", False)
        object.__setattr__(self, "_in_use", False)
        for name, entry in entries.items():
            self.add(name, entry)

    def add(self, name: str, entry: Any) -> None:
        """Adds an entry. Before ``run`` only."""
        if name in self._values.current or name == _VALUES or hasattr(type(self), name):
            raise InvalidArgumentError(f"State.add: the name '{name}' is taken; choose another")
        if type(entry) in (list, tuple, dict) or isinstance(entry, np.generic):
            canonical.dumps(entry, f"State.{name}")  # now, where the program sees the mistake
        if _is_plain(entry):
            self._values.current[name] = entry
            return
        for other, added in self._added.items():
            if added is entry:
                raise InvalidArgumentError(
                    f"State.add: '{name}' is the same object as '{other}'; name it once"
                )
        if isinstance(entry, type):
            raise TypeError(
                f"State: entry '{name}' is the class {entry.__module__}.{entry.__qualname__}; give "
                "an object of it"
            )
        if isinstance(entry, Sampler):
            self._core.add_sampler(name, entry)
        elif isinstance(entry, LearningRate):
            self._core.add_learning_rate(name, entry)
        elif isinstance(entry, MomentumSgd):
            self._core.add_momentum_sgd(name, entry)
        elif isinstance(entry, AdamW):
            self._core.add_adam_w(name, entry)
        elif callable(getattr(entry, "save", None)) and callable(getattr(entry, "load", None)):
            members = getattr(entry, "set_members", None)
            self._core.add_object(name, _saving(name, entry), entry.load, members)
        elif hasattr(entry, "state_dict") and hasattr(entry, "load_state_dict"):
            with_dict = _WithStateDict(name, entry)
            self._core.add_object(name, with_dict.save, with_dict.load)
        elif _is_memory(entry):
            self._add_tensor(name, entry)
        else:
            raise TypeError(
                f"State: entry '{name}' is a {type(entry).__module__}.{type(entry).__qualname__}; "
                "give an array, a Sampler, an object with save() and load() or with state_dict() and "
                "load_state_dict(), or a plain value (numbers, texts, lists and dicts of them)"
            )
        self._added[name] = entry

    def _add_tensor(self, name: str, tensor: Any) -> None:
        """Adds what has memory, which stays where it is."""
        if not getattr(tensor, "is_cuda", False):
            self._core.add_tensor(name, tensor)
            return
        canonical.check_tensor(tensor, f"State.{name}")  # now, where the program sees the mistake
        on_device = _OnDevice(name, tensor)
        self._core.add_object(name, on_device.save, on_device.load)

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_values")
        if values is not None and name in values.current:
            return values.current[name]
        raise AttributeError(self._no_value(name) or f"the State has no value '{name}'")

    def _no_value(self, name: str) -> str | None:
        """Why an entry that the State has is no value of it."""
        if name not in self.__dict__.get("_added", {}):
            return None
        return (
            f"'{name}' of the State is an array or an object, which stays yours: use the variable "
            "that you gave; attributes are numbers, texts, lists and dicts"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._values.current:
            raise AttributeError(
                self._no_value(name)
                or f"the State has no value '{name}'; name it when the State is made: "
                f"State({name}=...)"
            )
        canonical.dumps(value, f"State.{name}")  # now, where the program sees the mistake
        self._values.current[name] = value

    def commit(self) -> None:
        """The step boundary: this worker has finished an optimizer step.

        Members wait for each other here when a worker joins or leaves. Otherwise it costs no
        communication.
        """
        self._core.commit()

    @property
    def commits(self) -> int:
        """The steps committed by the job so far, the same on all members."""
        return int(self._core.commits())

    def save_to(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        """Writes a checkpoint of all entries, replacing the file at once and as a whole."""
        self._complete()
        self._core.save_to(os.fsencode(path))

    def load_from(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bool:
        """Takes the values of a checkpoint. Returns False if there is no such file."""
        self._complete()
        return bool(self._core.load_from(os.fsencode(path)))

    def _complete(self) -> None:
        """Adds the plain values, as one entry and after all others."""
        if not self._has_values:
            object.__setattr__(self, "_has_values", True)
            if self._values.current:
                self._core.add_object(_VALUES, self._values.save, self._values.load)


def run(
    state: State, body: Callable[[State], None], *, context: Context | None = None
) -> RunOutcome:
    """Trains: makes ``state`` the same on all members, then calls ``body(state)``.

    ``body`` calls ``state.commit()`` after each step. Workers that join call ``run`` too: they
    receive the state at a commit of the others, and enter ``body`` in the middle of the training; so
    its loop goes by counters that are part of the state. A worker that was evicted joins again, and
    ``body`` is called anew.

    Returns how the training ended. Exceptions of ``body`` come out of ``run``; the worker then leaves
    the job, and the others go on.
    """
    if not isinstance(state, State) or not callable(body):
        raise TypeError("run: give the State and then the function that trains: run(state, train)")
    state._complete()
    on = _core if context is None else context
    return on._run(state._core, lambda: _called(body, state))


#: How many threads are in functions that ``run`` calls.
_running = 0
_lock = threading.Lock()


def is_running() -> bool:
    """Whether the function that ``run`` calls runs in this process."""
    return _running > 0


def _called(body: Callable[[State], None], state: State) -> None:
    global _running
    with _lock:
        _running += 1
    try:
        body(state)
    finally:
        with _lock:
            _running -= 1
