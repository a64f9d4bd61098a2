"""init and shutdown, and what a worker can ask about itself and the library."""

from __future__ import annotations

import atexit
import contextlib
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import elastic
from horovod.common import environment
from horovod.common.absent import refuse
from horovod.common.exceptions import as_horovod_errors

#: Whether this process has joined the job, and whether the script is between init and shutdown.
_joined = False
_initialized = False
#: What has operations under way: each has ``drain`` and ``busy``.
_queues: list[Any] = []
#: How long operations under way may take to complete when the script has ended.
_PATIENCE_SECONDS = 2.0


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Joins the job. After ``shutdown`` it goes on in the same job.

    HOROVOD_ variables become options of elastic; ELASTIC_ variables go before them.

    Args:
        process_sets: a list of ProcessSets, the same on all workers. Others may be added later;
            "dynamic" says the same as none.
    """
    from horovod.common.process_sets import add_from_init

    global _joined, _initialized
    if comm:
        refuse("hvd.init(comm=...)", "a job has all workers that its launcher started")
    if not _joined:
        with as_horovod_errors():
            elastic.init(**environment.options(os.environ))
        _joined = True
        atexit.register(_leave)
        environment.name_variables_without_effect(elastic.rank())
    _initialized = True
    if process_sets and not isinstance(process_sets, str):
        add_from_init(process_sets)


def shutdown() -> None:
    """Ends the use of collectives. The worker leaves the job when its process ends, so that
    ``init`` may be called again."""
    global _initialized
    from horovod.common.process_sets import table

    finish_what_is_under_way()
    table.clear()
    _initialized = False


def finish_what_is_under_way() -> None:
    """Waits for the operations that are done in order."""
    for each in _queues:
        each.drain()


def _finished_in_time() -> bool:
    """Whether the operations under way are complete, or soon are."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while any(each.busy() for each in _queues):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _leave() -> None:
    """A process that ends by an exception has not finished: the others go on without it. So it is
    for one that ends with operations to which the others do not come, as after ``sys.exit(1)``."""
    if getattr(sys, "last_type", None) is not None:
        if any(each.busy() for each in _queues):
            _end_at_once()
    elif _finished_in_time():
        with contextlib.suppress(elastic.Error):
            elastic.shutdown()
    else:
        print(
            "elastic-horovod: this worker ended with operations under way that not all others have "
            "started; they go on without it (exit code 1)",
            file=sys.stderr,
        )
        _end_at_once()


def _end_at_once() -> None:
    """The interpreter cannot be torn down under a thread that is in a collective."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def is_initialized() -> bool:
    return _initialized


def _check() -> None:
    if not _initialized:
        raise ValueError("Horovod has not been initialized; use hvd.init().")


def _number(query: Callable[[], int], variable: str, default: int) -> int:
    """What elastic says. A joiner has no place yet until ``hvd.elastic.run`` calls its function:
    then it is the number that its launcher gave it."""
    _check()
    if elastic.size() > 0:
        return int(query())
    return int(os.environ.get(variable, default))


def size() -> int:
    """The members of the present view. It changes where workers come and go."""
    return _number(elastic.size, "WORLD_SIZE", 1)


def rank() -> int:
    """This worker's rank in the present view. It changes where workers come and go."""
    return _number(elastic.rank, "RANK", 0)


def local_size() -> int:
    """The members on this host."""
    return _number(elastic.local_size, "LOCAL_WORLD_SIZE", 1)


def local_rank() -> int:
    """This worker's rank among the members on this host."""
    return _number(elastic.local_rank, "LOCAL_RANK", 0)


def _on_one_host(name: str) -> None:
    if local_size() != size():
        refuse(
            name,
            "with members on several hosts only rank, size, local_rank and local_size are known",
        )


def cross_size() -> int:
    """The number of hosts, if it is one."""
    _on_one_host("hvd.cross_size")
    return 1


def cross_rank() -> int:
    """The number of this host, if there is one."""
    _on_one_host("hvd.cross_rank")
    return 0


def is_homogeneous() -> bool:
    """Whether each host has as many members, if there is one host."""
    _on_one_host("hvd.is_homogeneous")
    return True


def _has_backend(name: str) -> bool:
    if name == "native":
        return True
    folder = os.environ.get("ELASTIC_BACKEND_PATH") or pathlib.Path(elastic.__file__).parent / "lib"
    return any(pathlib.Path(folder).glob(f"libelastic_{name}.so*"))


def _uses_backend(name: str) -> bool:
    return os.environ.get("ELASTIC_BACKEND", "native") == name


def mpi_built() -> bool:
    """Whether elastic's backend mpi is there."""
    return _has_backend("mpi")


def mpi_enabled() -> bool:
    """Whether ELASTIC_BACKEND says mpi."""
    return _uses_backend("mpi")


def mpi_threads_supported() -> bool:
    if not mpi_enabled():
        raise ValueError("the backend mpi is not in use; set ELASTIC_BACKEND=mpi")
    return True


def gloo_built() -> bool:
    """Whether elastic's backend gloo is there."""
    return _has_backend("gloo")


def gloo_enabled() -> bool:
    """Whether ELASTIC_BACKEND says gloo."""
    return _uses_backend("gloo")


def nccl_built() -> int:
    """1 if elastic's backend nccl is there, and 0 if not."""
    return int(_has_backend("nccl"))


def cuda_built() -> bool:
    """Whether tensors on CUDA devices are possible here."""
    torch = sys.modules.get("torch")
    return bool(torch is not None and torch.cuda.is_available())


def ddl_built() -> bool:
    return False


def ccl_built() -> bool:
    return False


def rocm_built() -> bool:
    return False
