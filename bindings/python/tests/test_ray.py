"""Jobs on a Ray cluster of three nodes, which one machine pretends to be."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import elastic

ray = pytest.importorskip("ray")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from elastic.ray import ElasticRayJob, JobFailedError  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

HERE = pathlib.Path(__file__).parent
ROOT = pathlib.Path(os.environ["CHECKOUT"])
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        for _ in range(2):
            cluster.add_node(**NODE)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(autouse=True)
def in_this_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)  # the workers', too: they import the function from here


def command(function: str) -> list[str]:
    return ["python", "-c", f"import ray_training; ray_training.{function}()"]


def until(holds: Callable[[], bool], what: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.05)


def workers(job: ElasticRayJob) -> int:
    """That train now: there is a step boundary at which they can stop."""
    try:
        status = job.status()
    except elastic.UnavailableError:  # its server has not begun
        return 0
    trains = status["phase"] == "running" and status["commits"] > 0
    return int(status["world_size"]) if trains else 0


def test_a_training_that_fails_is_an_error_with_its_reason_and_host(cluster: Any) -> None:
    with pytest.raises(JobFailedError) as raised:
        ElasticRayJob(command("fail_on_first_rank")).run()
    assert isinstance(raised.value, elastic.Error) and raised.value.exit_code == 1
    assert re.search(r"node-\S+-[0-9a-f]{8}: worker 0 exited with code 7", str(raised.value))


def test_example(cluster: Any) -> None:
    examples = ROOT / "examples"
    done = subprocess.run(
        [sys.executable, "ray/regression_on_ray.py", "--min-workers", "3"],
        cwd=examples,
        env={**os.environ, "RAY_ADDRESS": cluster.address},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"^\[node-.*:0\] \d+ steps, largest error ([0-9.e+-]+)", done.stdout, re.M)
    assert found and float(found.group(1)) < 1e-3, done.stdout + done.stderr


def test_a_cluster_without_room_is_an_error(cluster: Any) -> None:
    with pytest.raises(elastic.UnavailableError, match=r"room for 0 workers.*has 1 of 2 CPU"):
        ElasticRayJob(["true"], workers_per_node=2, start_seconds=0).run()


def test_interrupt_stops_the_job_at_a_step_boundary(
    cluster: Any, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job = ElasticRayJob(command("train_until_told"), environment={"TOLD": str(tmp_path / "told")})
    job.start()
    until(lambda: workers(job) > 0, "workers train")
    interrupt = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        job.wait()
    assert "elasticrun: stopped by SIGINT" in capfd.readouterr().err
    with pytest.raises(elastic.UnavailableError):
        job.status()


def test_a_stopped_job_has_not_failed(cluster: Any, tmp_path: pathlib.Path) -> None:
    job = ElasticRayJob(command("train_until_told"), environment={"TOLD": str(tmp_path / "told")})
    job.start()
    until(lambda: workers(job) > 0, "workers train")
    job.stop()
    job.wait()


def test_the_job_ends_with_its_driver(cluster: Any, tmp_path: pathlib.Path) -> None:
    program = (
        "import os, sys, ray, elastic.ray\n"
        "ray.init(address=sys.argv[1], log_to_driver=False)\n"
        "job = elastic.ray.ElasticRayJob(sys.argv[2:], environment={'TOLD': os.environ['TOLD']})\n"
        "print(job.name, flush=True)\n"
        "job.run()\n"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", program, cluster.address, *command("train_until_told")],
        env={**os.environ, "TOLD": str(tmp_path / "told")},
        stdout=subprocess.PIPE,
        text=True,
    )
    with driver:
        assert driver.stdout is not None
        name = driver.stdout.readline().strip()
        until(lambda: len(processes_with(f"ELASTIC_JOB={name}")) > 0, "workers run")
        driver.kill()
    until(lambda: not processes_with(name), "workers, agents and launcher end")


def processes_with(text: str) -> list[str]:
    """The numbers of the processes with this in their command lines or environments."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if any(text.encode() in (process / file).read_bytes() for file in ("cmdline", "environ")):
                found.append(process.name)
    return found


def test_nodes_come_and_go(
    cluster: Any, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "told"
    job = ElasticRayJob(command("train_until_told"), min_workers=2, environment={"TOLD": str(told)})
    job.start()
    until(lambda: workers(job) == 3, "a worker on each node")
    lost, drained = sorted(cluster.worker_nodes, key=lambda node: str(node.node_id))
    cluster.add_node(**NODE)
    until(lambda: workers(job) == 4, "a worker on the new node")
    # Ray takes longer than this to notice.
    cluster.remove_node(lost, allow_graceful=False)
    until(lambda: workers(job) == 3, "the others go on without the lost node", seconds=10)
    drain = [sys.executable, "-m", "ray.scripts.scripts", "drain-node", "--address", cluster.address]
    drain += ["--node-id", drained.node_id, "--reason", "DRAIN_NODE_REASON_PREEMPTION"]
    drain += ["--reason-message", "test", "--deadline-remaining-seconds", "60"]
    subprocess.run(drain, check=True, capture_output=True, timeout=30)
    until(lambda: workers(job) == 2, "the workers of the drained node leave")
    told.touch()
    job.wait()
    output, errors = capfd.readouterr()
    found = re.findall(r"\[node-\S+-[0-9a-f]{8}:0\] uses beyond one an epoch: (\S+)", output)
    assert found == ["0", "0"], output + errors
    assert f"-{drained.node_id[:8]} is not in the list any more: its workers leave" in errors, errors
