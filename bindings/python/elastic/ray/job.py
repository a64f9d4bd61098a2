"""A job on the nodes of a Ray cluster."""

from __future__ import annotations

import contextlib
import json
import pathlib
import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elastic.errors import Error, InvalidArgumentError, NotInitializedError, UnavailableError
from elastic.ray import hosts
from elastic.ray.launcher import Launcher

if TYPE_CHECKING:
    from elastic.ray.relay import Relay


class JobFailedError(Error):
    """The job has failed. The text has the reasons, with the hosts that they concern."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        #: That of ``elasticrun``; docs/launching.md lists them.
        self.exit_code = exit_code


class ElasticRayJob:
    """Workers on all nodes of the cluster that have room for them, and on those that come later.

    The process that makes the job, the driver of Ray, holds the job's server. It runs on a node of the
    cluster: use ``ray job submit`` from elsewhere. The job ends with it.

    Args:
        command: the trainer, as for ``elasticrun``.
        workers_per_node: a node gets so many workers.
        min_workers: the job begins once the cluster has room for so many. With fewer it waits for
            others at its next step, and fails where none can come.
        max_workers: no more than this, however many nodes there are.
        cpus_per_worker: that an agent reserves of its node for each worker.
        gpus_per_worker: as well. An agent's workers see all GPUs of the agent; ``elastic.local_rank()``
            chooses.
        resources: others that an agent reserves, for all of its workers.
        environment: variables for the workers.
        options: more options of ``elasticrun``, such as ``["--encrypt"]``.
        start_seconds: time for nodes to come and for actors to start.

    Raises:
        InvalidArgumentError: an argument is wrong.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        workers_per_node: int = 1,
        min_workers: int = 1,
        max_workers: int | None = None,
        cpus_per_worker: float = 1,
        gpus_per_worker: float = 0,
        resources: Mapping[str, float] | None = None,
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        start_seconds: float = 60,
    ) -> None:
        if isinstance(command, str) or not command:
            raise InvalidArgumentError(
                f"command {command!r}: give a list of words, such as ['python', 'train.py']"
            )
        if workers_per_node < 1:
            raise InvalidArgumentError(f"workers_per_node must be at least 1, not {workers_per_node}")
        if min_workers < 1:
            raise InvalidArgumentError(f"min_workers must be at least 1, not {min_workers}")
        if max_workers is not None and max_workers < min_workers:
            raise InvalidArgumentError(f"max_workers {max_workers} is less than min_workers {min_workers}")
        self._command = list(command)
        self._slots = workers_per_node
        self._min_workers = min_workers
        self._max_workers = max_workers
        self._wanted = {
            "CPU": cpus_per_worker * workers_per_node,
            "GPU": gpus_per_worker * workers_per_node,
            **(resources or {}),
        }
        threads = {"OMP_NUM_THREADS": str(max(1, int(cpus_per_worker)))}  # Ray's number is an agent's
        self._environment = {**threads, **(environment or {})}
        self._options = list(options)
        self._start_seconds = start_seconds
        #: The job's name, for ``elasticrun ctl --job NAME`` on the driver's machine.
        self.name = f"ray-{uuid.uuid4().hex[:8]}"
        self._launcher: Launcher | None = None
        self._until_end = contextlib.ExitStack()  # closes what the job has here

    def run(self) -> None:
        """``start`` and ``wait``."""
        self.start()
        self.wait()

    def start(self) -> None:
        """Waits for room on the cluster, and starts the job. Calls ``ray.init()`` if that is not done.

        Raises:
            UnavailableError: the cluster has no room for ``min_workers`` within ``start_seconds``; the
                text says what each node lacks.
            InvalidArgumentError: the driver is a Ray Client, outside of the cluster.
        """
        if self._launcher is not None:
            raise InvalidArgumentError("this job was started before; make another one")
        import ray
        from ray.util import client, get_node_ip_address

        from elastic.ray.relay import Relay

        if client.ray.is_connected():
            raise InvalidArgumentError(
                "the driver is outside of the cluster (ray://), where nodes do not reach the job's server; "
                "run it by 'ray job submit'"
            )
        if not ray.is_initialized():
            ray.init()
        self._wait_for_room()
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="elastic-ray-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            relay = Relay(folder, self._wanted, self._slots, self._start_seconds)
            stack.callback(relay.close)
            arguments = self._arguments(relay, get_node_ip_address())
            self._launcher = Launcher(self.name, arguments, self._environment)
            stack.callback(self._launcher.close)
            self._until_end = stack.pop_all()

    def wait(self) -> None:
        """Waits for the end of the job, which it then closes. After KeyboardInterrupt, which stops the
        job at the next step boundary (a second one: at once), it waits as well, and raises it then.

        Raises:
            JobFailedError: the job has failed.
        """
        launcher = self._running()
        interrupted = False
        with self._until_end:
            while True:
                try:
                    code = launcher.wait()
                    break
                except KeyboardInterrupt:
                    interrupted = True
                    launcher.interrupt()
        if interrupted:
            raise KeyboardInterrupt
        if code != 0:
            raise JobFailedError(launcher.failure(), code)

    def stop(self) -> None:
        """Asks the job to stop at the next step boundary. ``wait`` waits for that, and raises nothing if
        workers are in ``elastic.run``. Otherwise they are stopped where they are, and it raises
        ``JobFailedError``."""
        self._running().control("stop")

    def status(self) -> dict[str, Any]:
        """The state of the job: the object of ``elasticrun ctl status --json``.

        Raises:
            UnavailableError: the job has ended, or its server does not answer.
        """
        status: dict[str, Any] = json.loads(self._running().control("status", "--json"))
        return status

    def _running(self) -> Launcher:
        if self._launcher is None:
            raise NotInitializedError("the job has not been started")
        return self._launcher

    def _wait_for_room(self) -> None:
        from elastic.ray import cluster

        deadline = time.monotonic() + self._start_seconds
        while reason := hosts.why_no_room(cluster.nodes(), self._wanted, self._slots, self._min_workers):
            if time.monotonic() > deadline:
                raise UnavailableError(reason)
            time.sleep(1)

    def _arguments(self, relay: Relay, address: str) -> list[str]:
        """Those of elasticrun."""
        arguments = ["--hostfile", str(relay.host_file), "--ssh", str(relay.connect), "--bind", address]
        arguments += ["--min-np", str(self._min_workers)]
        arguments += ["--start-timeout-ms", str(max(1, int(self._start_seconds * 1000)))]
        if self._max_workers is not None:
            arguments += ["--max-np", str(self._max_workers)]
        for name in self._environment:
            arguments += ["--env", name]  # without its value, which others could see
        return [*arguments, *self._options, "--", *self._command]
