"""The options of horovodrun, and what becomes of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from horovod.common import environment

_SEVERAL = (
    "use elasticrun --hosts or --hostfile, with the same arguments "
    "(docs/launching.md, several machines)"
)


def _same(value: str) -> str:
    return value


def _limit(value: str) -> str:
    return environment.milliseconds(value, 0)


def _megabytes(value: str) -> str:
    return environment.scaled(value, 1 << 20, 0, 1 << 40, "megabytes")


def _number_from(least: int, instead: str = "") -> Callable[[str], str]:
    def whole(value: str) -> str:
        if not value.isdecimal() or int(value[:10]) < least or len(value) > 9:
            raise ValueError(f"a whole number from {least} on{instead}")
        return value

    return whole


def _as_in(variable: str) -> Callable[[str], str]:
    """The value itself, if the workers will take it in this variable."""

    def checked(value: str) -> str:
        environment.OPTIONS[variable][1](value)
        return value

    return checked


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of horovodrun. It has one of ``elasticrun``, ``variable`` and ``refused``, or no
    effect."""

    flags: tuple[str, ...]
    #: Whether a value follows.
    takes: bool = True
    #: The option of elasticrun that it becomes.
    elasticrun: str | None = None
    #: The HOROVOD_ variable of the workers that it becomes.
    variable: str | None = None
    #: How the value is made.
    convert: Callable[[str], str] = _same
    #: What to use instead; the option is an error.
    refused: str | None = None


def _flags(*flags: str) -> tuple[str, ...]:
    return flags


OPTIONS = (
    Option(
        _flags("-np", "--num-proc"),
        elasticrun="-np",
        convert=_number_from(1, "; a range is given by --min-np and --max-np"),
    ),
    Option(_flags("--min-np", "--min-num-proc"), elasticrun="--min-np", convert=_number_from(1)),
    Option(_flags("--max-np", "--max-num-proc"), elasticrun="--max-np", convert=_number_from(1)),
    Option(_flags("--reset-limit"), elasticrun="--max-restarts", convert=_number_from(0)),
    Option(
        _flags("--start-timeout"),
        elasticrun="--start-timeout-ms",
        convert=environment.milliseconds,
    ),
    Option(
        _flags("--elastic-timeout"),
        elasticrun="--below-minimum-timeout-ms",
        convert=environment.milliseconds,
    ),
    Option(_flags("--output-filename"), elasticrun="--output-dir"),
    Option(
        _flags("--stall-check-shutdown-time-seconds"),
        elasticrun="--stall-timeout-ms",
        convert=_limit,
    ),
    Option(
        _flags("--stall-check-warning-time-seconds"),
        variable="HOROVOD_STALL_CHECK_TIME_SECONDS",
        convert=_as_in("HOROVOD_STALL_CHECK_TIME_SECONDS"),
    ),
    Option(_flags("--no-stall-check"), takes=False, variable="HOROVOD_STALL_CHECK_DISABLE"),
    Option(
        _flags("--fusion-threshold-mb"),
        variable="HOROVOD_FUSION_THRESHOLD",
        convert=_megabytes,
    ),
    Option(
        _flags("--log-level"),
        variable="HOROVOD_LOG_LEVEL",
        convert=_as_in("HOROVOD_LOG_LEVEL"),
    ),
    Option(_flags("-H", "--hosts")),  # this machine alone; see launch.py
    Option(_flags("-hostfile", "--hostfile"), refused=_SEVERAL),
    Option(
        _flags("--host-discovery-script"),
        refused="use elasticrun --discover, with the same script (docs/launching.md, several machines)",
    ),
    Option(_flags("--slots-per-host"), refused="give -np"),
    Option(_flags("-p", "--ssh-port"), refused=_SEVERAL),
    Option(_flags("-i", "--ssh-identity-file"), refused=_SEVERAL),
    Option(
        _flags("--network-interfaces", "--network-interface"),
        refused="set ELASTIC_BIND to the address of the interface",
    ),
    Option(_flags("--mpi-args"), refused="start the workers by mpirun itself"),
    Option(_flags("--binding-args"), refused="start the workers by mpirun itself"),
    Option(_flags("--jsrun"), takes=False, refused="start the workers by mpirun or srun"),
    Option(_flags("--config-file"), refused="give the options themselves"),
    Option(_flags("--verbose"), takes=False),
    Option(_flags("--disable-cache"), takes=False),
    Option(_flags("--gloo"), takes=False),
    Option(_flags("--mpi"), takes=False),
    Option(_flags("--tcp"), takes=False),
    Option(_flags("--stall-check"), takes=False),
    Option(_flags("--cycle-time-ms")),
    Option(_flags("--cache-capacity")),
    Option(_flags("--hierarchical-allreduce", "--no-hierarchical-allreduce"), takes=False),
    Option(_flags("--hierarchical-allgather", "--no-hierarchical-allgather"), takes=False),
    Option(_flags("--autotune"), takes=False, variable="HOROVOD_AUTOTUNE"),
    Option(_flags("--no-autotune"), takes=False),
    Option(_flags("--autotune-log-file")),
    Option(_flags("--autotune-warmup-samples")),
    Option(_flags("--autotune-steps-per-sample")),
    Option(_flags("--autotune-bayes-opt-max-samples")),
    Option(_flags("--autotune-gaussian-process-noise")),
    Option(_flags("--timeline-filename"), variable="HOROVOD_TIMELINE"),
    Option(_flags("--timeline-mark-cycles", "--no-timeline-mark-cycles"), takes=False),
    Option(_flags("--mpi-threads-disable", "--no-mpi-threads-disable"), takes=False),
    Option(_flags("--num-nccl-streams")),
    Option(_flags("--thread-affinity")),
    Option(_flags("--gloo-timeout-seconds")),
    Option(_flags("--log-with-timestamp", "--log-without-timestamp"), takes=False),
    Option(_flags("-prefix-timestamp", "--prefix-output-with-timestamp"), takes=False),
)

BY_FLAG = {flag: option for option in OPTIONS for flag in option.flags}
