"""``horovod.run``: a function on several workers of this machine."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cloudpickle

#: Arguments of Horovod's function that ask for nothing here.
_WITHOUT_EFFECT = {"disable_cache", "use_gloo", "use_mpi", "verbose"}
#: Arguments that become options of horovodrun.
_OPTIONS = {
    "min_num_proc": "--min-np",
    "max_num_proc": "--max-np",
    "min_np": "--min-np",
    "max_np": "--max-np",
    "reset_limit": "--reset-limit",
    "start_timeout": "--start-timeout",
    "output_filename": "--output-filename",
    "hosts": "--hosts",
}


def _workers(num_proc: int | None, np: int | None) -> int:
    if num_proc is not None and np is not None and num_proc != np:
        raise ValueError(f"horovod.run: num_proc is {num_proc} and np is {np}; give one of them")
    given = num_proc if num_proc is not None else np
    workers = 1 if given is None else given
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ValueError(f"horovod.run: np is {workers!r}; it must be a whole number from 1 on")
    return workers


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int | None = None,
    *,
    np: int | None = None,
    executable: str | None = None,
    **options: Any,
) -> list[Any]:
    """Calls ``func(*args, **kwargs)`` on ``num_proc`` workers, and returns their results by rank.

    Args:
        func: it calls ``hvd.init()`` itself. It and its results are pickled.
        num_proc: 1 by default; ``np`` is its older name.
        executable: the interpreter; this one by default.
        options: ``min_num_proc``, ``max_num_proc``, ``reset_limit``, ``start_timeout``,
            ``output_filename`` and ``hosts``, as those of horovodrun.

    Raises:
        RuntimeError: the job failed, or the function did on a worker; the output says why.
        ValueError: ``num_proc`` is no number of workers.
        NotImplementedError: an option is not there.
    """
    from horovod.runner.launch import Command, elasticrun

    workers = _workers(num_proc, np)
    chosen = []
    for name, value in options.items():
        if value is None or name in _WITHOUT_EFFECT:
            continue
        if name not in _OPTIONS:
            raise NotImplementedError(
                f"horovod.run({name}=...) is not in elastic-horovod; start the workers with "
                "horovodrun or mpirun"
            )
        chosen += [_OPTIONS[name], str(value)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "call").write_bytes(cloudpickle.dumps((func, args, kwargs or {})))
        program = [executable or sys.executable, "-m", "horovod.runner.task", scratch]
        command = Command(["-np", str(workers), *chosen, *program])
        done = subprocess.run([elasticrun(), *command.arguments()], check=False)
        results = sorted(folder.glob("result.*"), key=lambda file: int(file.suffix[1:]))
        if done.returncode != 0 or not results:
            raise RuntimeError(
                f"horovod.run: the job ended with code {done.returncode}, see its output"
            )
        failed = sorted(int(file.suffix[1:]) for file in folder.glob("failed.*"))
        if failed:
            raise RuntimeError(
                f"horovod.run: the function failed on worker {failed[0]}, see its output"
            )
        return [cloudpickle.loads(file.read_bytes()) for file in results]
