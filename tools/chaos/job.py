"""The processes of a chaos run: a rendezvous server with its journal, and workers that train."""

import json
import os
import pathlib
import signal
import subprocess
import time

START_DEADLINE = 20.0  # seconds, for a server to listen
RETURN_WINDOW = 6.0  # seconds after which a server has all members back, or does without


class Worker:
    """One process of the trainer. `struck` once a fault has made what it does alone irrelevant."""

    def __init__(self, name, process, output):
        self.name = name
        self.process = process
        self.output = output
        self.born = time.monotonic()
        self.stopped_at = None  # while it stands still
        self.longest_stop = 0.0  # seconds
        self.went_on_ns = 0  # on the monotonic clock, when it last stopped standing still
        self.killed = False

    @property
    def pid(self):
        return self.process.pid

    @property
    def struck(self):
        return self.killed or self.stopped_at is not None or self.longest_stop > 0.4

    def stop(self):
        self.stopped_at = time.monotonic()
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        if self.stopped_at is None:
            return
        self.went_on_ns = time.monotonic_ns()
        self.process.send_signal(signal.SIGCONT)
        self.longest_stop = max(self.longest_stop, time.monotonic() - self.stopped_at)
        self.stopped_at = None

    def kill(self):
        self.killed = True
        self.process.kill()

    def log(self):
        return self.output.read_text(errors="replace")


class Job:
    def __init__(self, binaries, folder, name, workers, transport, encrypt, options):
        self.binaries = binaries
        self.folder = folder
        self.name = name
        self.transport = transport
        self.encrypt = encrypt
        self.options = options
        self.secret = folder / "secret"
        self.secret.write_text(os.urandom(32).hex() + "\n")
        self.secret.chmod(0o600)
        self.first_view = workers
        self.server = None
        self.server_output = open(folder / "server", "ab")
        self.port = 0
        self.server_since = 0.0
        self.workers = []
        self.born = 0

    # --- the server ---

    def start_server(self):
        port_file = self.folder / "port"
        port_file.unlink(missing_ok=True)
        self.server = subprocess.Popen(
            [self.binaries / "elastic-rendezvous", "--job", self.name, "--np", str(self.first_view),
             "--port", str(self.port), "--secret-file", self.secret, "--port-file", port_file,
             "--journal", self.folder / "journal", *(["--encrypt"] if self.encrypt else [])],
            stdout=self.server_output, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_DEADLINE
        while not port_file.exists():
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the rendezvous server does not start: see " + str(self.folder / "server"))
            time.sleep(0.01)
        self.server_since = time.monotonic()
        self.port = int(json.loads(port_file.read_text())["address"].rpartition(":")[2])

    def kill_server(self):
        self.server.kill()
        self.server.wait()
        self.server = None

    def server_steady(self):
        return self.server is not None and time.monotonic() - self.server_since > RETURN_WINDOW

    def control(self, *words):
        """What the server says; None where it does not take it."""
        asked = subprocess.run(
            [self.binaries / "elasticrun", "ctl", "--rendezvous", f"127.0.0.1:{self.port}", "--job",
             self.name, "--secret-file", self.secret, *(["--encrypt"] if self.encrypt else []),
             *words],
            capture_output=True, timeout=30)
        return asked.stdout if asked.returncode == 0 else None

    def settled(self):
        """All workers that live are members, and nothing is being changed."""
        answer = self.control("status", "--json")
        status = json.loads(answer) if answer is not None else {}
        return status.get("phase") == "running" and len(status["members"]) == len(self.live())

    # --- the workers ---

    def start_worker(self):
        self.born += 1
        name = f"worker{self.born}"
        output = self.folder / name
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("ELASTIC_")}
        environment.update(
            ELASTIC_RENDEZVOUS=f"127.0.0.1:{self.port}", ELASTIC_JOB=self.name,
            ELASTIC_SECRET_FILE=str(self.secret), ELASTIC_LABEL=name, ELASTIC_LOG_LEVEL="info",
            ELASTIC_TRANSPORT=self.transport, ELASTIC_ENCRYPT="1" if self.encrypt else "0")
        with open(output, "wb") as file:
            process = subprocess.Popen(
                [self.binaries / "train_digits", "--epochs", "1000000", "--report", self.folder,
                 "--trace", self.folder, *self.options],
                stdout=file, stderr=subprocess.STDOUT, env=environment)
        worker = Worker(name, process, output)
        self.workers.append(worker)
        return worker

    def live(self):
        return [worker for worker in self.workers if worker.process.poll() is None]

    def by_pid(self, pid):
        return next(worker for worker in self.workers if worker.pid == pid)

    def end(self):
        for worker in self.live():
            worker.process.kill()
        if self.server:
            self.server.kill()
            self.server.wait()

    # --- what can be seen from outside ---

    def descriptors(self, pid):
        try:
            return len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            return 0

    def leaked(self):
        """Processes of this job that nobody has waited for, by their environment."""
        mark = f"ELASTIC_JOB={self.name}".encode()
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in entry.read_bytes().split(b"\0"):
                    found.append(int(entry.parent.name))
            except OSError:
                pass
        return found

    def listening_ports(self):
        """Of the server and of the workers' data connections."""
        inodes = set()
        for process in [self.server, *(worker.process for worker in self.live())]:
            for entry in pathlib.Path(f"/proc/{process.pid}/fd").glob("*") if process else ():
                try:
                    inodes.add(os.readlink(entry))
                except OSError:
                    pass
        ports = []
        for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                ports.append(int(fields[1].rpartition(":")[2], 16))
        return ports
