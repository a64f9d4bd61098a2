"""horovodrun, horovod.run, and the HOROVOD_ variables."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

horovod = pytest.importorskip("horovod")

from horovod.common import environment  # noqa: E402
from horovod.runner.launch import Command, UsageError  # noqa: E402

HOROVODRUN = pathlib.Path(sys.executable).with_name("horovodrun")


def horovodrun(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HOROVODRUN, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_options_become_those_of_elasticrun() -> None:
    command = Command(
        "-np 4 --min-np 2 --max-np=6 --reset-limit 5 --start-timeout 30 -H localhost:4 --mpi "
        "--fusion-threshold-mb 32 --no-stall-check --output-filename out python train.py --gloo".split()
    )
    assert (
        command.arguments()
        == (
            "-np 4 --min-np 2 --max-np 6 --max-restarts 5 --start-timeout-ms 30000 --output-dir out "
            "python train.py --gloo"
        ).split()
    )
    assert command.variables == {
        "HOROVOD_FUSION_THRESHOLD": str(32 << 20),
        "HOROVOD_STALL_CHECK_DISABLE": "1",
    }
    assert command.without_effect == ["--mpi"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("-np 2 --host-discovery-script s p", "elasticrun --discover"),
        ("-np 2 -H far:2 p", "far:2 is another machine.*elasticrun --hosts"),
        ("-np 2 --min-nq 1 p", "did you mean --min-np"),
        ("-np 2 --start-timeout soon p", "must be a number"),
        ("-np 2 --elastic-timeout inf p", "--elastic-timeout is 'inf'.*seconds"),
        ("-np 2 --fusion-threshold-mb -1 p", "--fusion-threshold-mb is '-1'.*megabytes"),
        ("-np 2 --stall-check-warning-time-seconds x p", "warning-time-seconds is 'x'.*seconds"),
        ("-np 2 --log-level FOO p", "--log-level is 'FOO'.*one of trace"),
        ("-np 2 -np 1 p", "-np is given twice"),
        ("-np 2:4 p", "-np is '2:4'.*range is given by --min-np and --max-np"),
        ("-np 2 --slots 4 p", "If elasticrun has it, start the script with elasticrun"),
        ("-np 2 --max-np 0 p", "--max-np is '0'.*from 1 on"),
        ("-np 2 -H localhost:x p", "--hosts is 'localhost:x'"),
        ("-np 2 -H= p", "--hosts is ''"),
        ("-np 2", "no program"),
        ("p", "number of workers"),
    ],
)
def test_mistakes_say_what_to_do(line: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        Command(line.split())


def test_horovodrun_starts_workers() -> None:
    source = (
        "import os; place = os.environ.get('RANK'); import horovod.torch as hvd; hvd.init(); "
        "assert os.environ['HOROVOD_RANK'] == place == str(hvd.rank()); print('size', hvd.size())"
    )
    pytest.importorskip("torch")
    done = horovodrun(
        "-np", "2", "--disable-cache", sys.executable, "-c", source, HOROVOD_CYCLE_TIME="5"
    )
    assert done.returncode == 0 and done.stdout.count("size 2") == 2, done
    output = done.stdout + done.stderr
    assert "without effect here: --disable-cache" in output
    assert output.count("without effect here: HOROVOD_CYCLE_TIME") == 1, output
    refused = horovodrun("-np", "2", "--hostfile", "hosts", "program")
    assert refused.returncode == 2 and "elasticrun --hosts" in refused.stderr


def test_variables_become_options() -> None:
    given = {
        "HOROVOD_FUSION_THRESHOLD": "1048576",
        "HOROVOD_STALL_CHECK_TIME_SECONDS": "60",
        "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "0",
        "HOROVOD_LOG_LEVEL": "WARNING",
        "HOROVOD_AUTOTUNE": "1",
        "HOROVOD_RANK": "0",
        "HOROVOD_TIMELINE": "file",
        "HOROVOD_CYCLE_TIME": "1",
    }
    assert environment.options(given) == {
        "bucket_bytes": "1048576",
        "stall_warning_ms": "60000",
        "stall_timeout_ms": "0",
        "log_level": "warn",
        "autotune": "1",
        "timeline": "file",
    }
    assert environment.options({"HOROVOD_TIMELINE": "DYNAMIC"}) == {}
    assert environment.without_effect(given) == ["HOROVOD_CYCLE_TIME"]
    with pytest.raises(ValueError, match="HOROVOD_FUSION_THRESHOLD is '64M'"):
        environment.options({"HOROVOD_FUSION_THRESHOLD": "64M"})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HOROVOD_STALL_CHECK_TIME_SECONDS", "inf"),
        ("HOROVOD_STALL_CHECK_TIME_SECONDS", "nan"),
        ("HOROVOD_STALL_CHECK_TIME_SECONDS", "-4"),
        ("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "inf"),
        ("HOROVOD_START_TIMEOUT", "1e400"),
        ("HOROVOD_START_TIMEOUT", "0"),
        ("HOROVOD_FUSION_THRESHOLD", "-1"),
        ("HOROVOD_LOG_LEVEL", "loud"),
    ],
)
def test_wrong_values_are_refused_by_the_name_of_the_variable(variable: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{variable} is '{value}'; it must be"):
        environment.options({variable: value})


def squared(number: int, offset: int = 0) -> tuple[int, int]:
    import horovod.torch as hvd

    hvd.init()
    return hvd.rank(), number * hvd.size() + offset


def test_run_returns_the_results_by_rank() -> None:
    pytest.importorskip("torch")
    assert horovod.run(squared, (3,), {"offset": 1}, np=2) == [(0, 7), (1, 7)]
    with pytest.raises(NotImplementedError, match="host_discovery_script"):
        horovod.run(squared, (3,), np=2, host_discovery_script="script")


def gone_first() -> int:
    """Worker 0 ends at once, and worker 1 is rank 0 when it ends."""
    import horovod.torch as hvd
    import torch

    hvd.init()
    rank = hvd.rank()
    while rank == 1 and hvd.allreduce(torch.ones(1), op=hvd.Sum) > 1:
        pass
    return rank


def failing() -> None:
    import horovod.torch as hvd

    hvd.init()
    if hvd.rank() == 1:
        raise ValueError("of one worker")


def test_run_keeps_all_results_and_tells_failures() -> None:
    pytest.importorskip("torch")
    assert horovod.run(gone_first, np=2) == [0, 1]
    with pytest.raises(RuntimeError, match="failed on worker 1"):
        horovod.run(failing, np=2)
    for wrong in (0, -1, "x", 1.5):
        with pytest.raises(ValueError, match="whole number from 1 on"):
            horovod.run(failing, np=wrong)
