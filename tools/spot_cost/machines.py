"""The processes of a replay: a rendezvous server, and machines, each an elasticrun with one worker."""

import os
import subprocess

EPOCHS = 1000000  # more than any replay trains


class ReplayFailed(Exception):
    pass


class Machines:
    """The first machine is the base, which is not taken. All end if this process is killed."""

    def __init__(self, programs, folder, most, step_seconds):
        self.programs, self.folder = programs, folder
        self.connection = folder / "connection"
        self.output = open(folder / "output", "wb")
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("ELASTIC_")}
        self.trainer = [programs / "train_digits", "--epochs", EPOCHS, "--trace", folder,
                        "--report", folder, "--step-ms", round(1000 * step_seconds)]
        self.live = []
        self.server = self.run(programs / "elastic-rendezvous", "--np", 1, "--max-np", most,
                               "--exit-when-done", "--connection-file", self.connection)

    def run(self, *command):
        try:
            return subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                    stdout=self.output, stderr=subprocess.STDOUT, env=self.environment)
        except OSError as error:
            raise ReplayFailed(f"{command[0]}: {error.strerror}: build it, or name another --bin") from error

    def start(self):
        machine = self.run(self.programs / "elasticrun", "--connection-file", self.connection,
                           "--end-with-stdin", "-np", 1, *self.trainer)
        self.live.append(machine)
        return machine

    def take(self, machine):
        """As a cloud does without a notice. The worker ends with its elasticrun."""
        self.live.remove(machine)
        self.kill(machine)

    def check(self):
        """Only `take` ends machines."""
        if self.server.poll() is not None or any(machine.poll() is not None for machine in self.live):
            raise ReplayFailed(f"a process of the job has ended by itself: {self.log()}")

    def log(self):
        return (self.folder / "output").read_text(errors="replace")[-4000:]

    def end(self):
        for process in [*self.live, self.server]:
            self.kill(process)
        self.output.close()

    def kill(self, process):
        process.kill()
        process.wait()
        process.stdin.close()
