"""HOROVOD_ variables: those that correspond to an option of elastic, and the rest, which are named
once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any


_DAY_MS = 86400000
_LEVELS = ("trace", "debug", "info", "warn", "error", "off")


def scaled(value: str, factor: int, least: int, most: int, unit: str) -> str:
    """``value`` times ``factor``, as a whole number.

    Raises:
        ValueError: it is not from ``least`` to ``most``; the text says what it must be.
    """
    try:
        result = round(float(value) * factor)
    except (ValueError, OverflowError):  # no number, nan, or inf
        result = -1
    if not least <= result <= most:
        ends = [f"{end / factor:.15g}" for end in (least, most)]
        raise ValueError(f"a number of {unit} from {ends[0]} to {ends[1]}")
    return str(result)


def milliseconds(value: str, least: int = 1) -> str:
    """Of a time in seconds, of at most a day."""
    return scaled(value, 1000, least, _DAY_MS, "seconds")


def _bytes(value: str) -> str:
    return scaled(value, 1, 0, 1 << 40, "bytes")


def _limit(seconds: str) -> str:
    return milliseconds(seconds, 0)


def _warning(seconds: str) -> str:
    # 0 says that there is no warning; the longest time that elastic takes is a day.
    limit = _limit(seconds)
    return str(_DAY_MS) if limit == "0" else limit


def _level(value: str) -> str:
    name = {"warning": "warn", "fatal": "error"}.get(value.lower(), value.lower())
    if name not in _LEVELS:
        raise ValueError("one of trace, debug, info, warning, error, fatal and off")
    return name


def _disabled(value: str) -> str | None:
    return str(_DAY_MS) if value not in ("", "0") else None


def _switch(value: str) -> str:
    return "1" if value not in ("", "0") else "0"


def _timeline(path: str) -> str | None:
    # DYNAMIC says that the script calls start_timeline.
    return None if path == "DYNAMIC" else path


#: HOROVOD_ variable -> option of elastic.init, and how its value is made; None: leave it alone.
OPTIONS: dict[str, tuple[str, Callable[[str], str | None]]] = {
    "HOROVOD_FUSION_THRESHOLD": ("bucket_bytes", _bytes),
    "HOROVOD_AUTOTUNE": ("autotune", _switch),
    "HOROVOD_STALL_CHECK_TIME_SECONDS": ("stall_warning_ms", _warning),
    "HOROVOD_STALL_CHECK_DISABLE": ("stall_warning_ms", _disabled),
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": ("stall_timeout_ms", _limit),
    "HOROVOD_START_TIMEOUT": ("init_timeout_ms", milliseconds),
    "HOROVOD_LOG_LEVEL": ("log_level", _level),
    "HOROVOD_TIMELINE": ("timeline", _timeline),
}
#: What tells a worker its place, by the variable of elasticrun that it follows.
PLACES = {
    "HOROVOD_RANK": "RANK",
    "HOROVOD_SIZE": "WORLD_SIZE",
    "HOROVOD_LOCAL_RANK": "LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE": "LOCAL_WORLD_SIZE",
}
#: Set by launchers and builds; they ask for nothing.
_SILENT = ("HOROVOD_CROSS_", "HOROVOD_WITH", "HOROVOD_ELASTIC", "HOROVOD_HOSTNAME", "HOROVOD_BUILD",
    "HOROVOD_DYNAMIC_PROCESS_SETS")


def options(environment: Mapping[str, str]) -> dict[str, str]:
    """The options of ``elastic.init`` that the HOROVOD_ variables ask for. ELASTIC_ variables go
    before them.

    Raises:
        ValueError: a value is wrong; the message has the variable, and what it must be.
    """
    result = {}
    for variable, (option, convert) in OPTIONS.items():
        given = environment.get(variable)
        if not given:
            continue
        try:
            value = convert(given)
        except ValueError as error:
            shown = given if len(given) <= 40 else f"{given[:40]}…"
            raise ValueError(f"{variable} is '{shown}'; it must be {error}") from None
        if value is not None:
            result[option] = value
    return result


def without_effect(environment: Mapping[str, str]) -> list[str]:
    """The HOROVOD_ variables that are set and do nothing here."""
    return sorted(
        name
        for name in environment
        if name.startswith("HOROVOD_")
        and name not in OPTIONS
        and name not in PLACES
        and not name.startswith(_SILENT)
    )


_told = False


def name_variables_without_effect(rank: int) -> None:
    """Writes them to stderr: once in a job, by the worker with rank 0."""
    global _told
    names = without_effect(os.environ)
    if names and rank == 0 and not _told:
        print(
            f"elastic-horovod: without effect here: {', '.join(names)}; docs/horovod.md has the "
            "table of variables",
            file=sys.stderr,
            flush=True,
        )
    _told = True


def tell_ranks() -> None:
    """Sets HOROVOD_RANK and the like under elasticrun, as scripts may read them before ``init``."""
    given: dict[str, Any] = dict(os.environ)
    if "ELASTIC_SLOT" not in given:
        return
    for name, source in PLACES.items():
        if source in given:
            os.environ.setdefault(name, given[source])
    os.environ.setdefault("HOROVOD_CROSS_RANK", "0")
    os.environ.setdefault("HOROVOD_CROSS_SIZE", "1")
