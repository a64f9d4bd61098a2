"""What the workers of a storm have written, and whether it can be."""

import pathlib


def is_alive(pid):
    try:
        # pid (name) state ...; a process that nobody has waited for yet is dead.
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Record:
    """Reads the records as they grow."""

    def __init__(self, folder):
        self.folder = folder
        self.offsets = {}
        self.steps = {}  # step -> (pid, generation, contributors, state) of its newest generation
        self.latest = {}  # pid -> its latest step, or nothing since it entered
        self.entered = {}  # pid -> the step that it received the state of
        self.finished = {}  # pid -> its last step
        self.struck = set()  # pids that were killed or stopped
        self.newest = 0
        self.generation = 0
        self.violations = []

    def read(self):
        """True when there was a new step."""
        before = self.newest
        for path in self.folder.iterdir():
            if not path.name.isdigit():
                continue
            pid = int(path.name)
            with open(path, "rb") as file:
                file.seek(self.offsets.get(pid, 0))
                data = file.read()
            whole = data[:data.rfind(b"\n") + 1]
            self.offsets[pid] = self.offsets.get(pid, 0) + len(whole)
            for line in whole.decode().splitlines():
                self.add(pid, line)
        return self.newest > before

    def add(self, pid, line):
        words = line.split()
        if words[0] == "step":
            self.add_step(pid, int(words[1]), int(words[2]), *words[3:])
        elif words[0] == "enters":
            # After an eviction it receives the state again.
            self.latest[pid] = None
            self.entered[pid] = int(words[-1])
        elif words[0] == "finished":
            self.finished[pid] = self.latest[pid] or self.entered[pid]
        elif words[0] == "error:" and pid in self.struck:
            pass  # it may have been given up while it stood still
        else:
            self.violations.append(f"worker {pid}: {line}")

    def add_step(self, pid, step, generation, contributors, state):
        last = self.latest.get(pid)
        if last is not None and step != last + 1:
            self.violations.append(f"worker {pid}: step {step} after step {last}")
        self.latest[pid] = step
        self.newest = max(self.newest, step)
        self.generation = max(self.generation, generation)
        mine = (pid, generation, contributors, state)
        known = self.steps.setdefault(step, mine)
        if known[1:] == mine[1:]:
            return
        # What a worker that was killed or given up has completed alone, in a view that is over,
        # nobody else has seen.
        older, newer = sorted((known, mine), key=lambda one: one[1])
        if older[1] == newer[1] or older[0] not in self.struck:
            self.violations.append(f"step {step} differs: {known} and {mine}")
        self.steps[step] = newer

    def alive(self):
        return [pid for pid in list(self.offsets) if is_alive(pid)]

    def holders(self):
        """Workers that have made a step of late, and so have the state."""
        return [pid for pid in self.alive()
                if self.latest.get(pid) is not None and self.latest[pid] >= self.newest - 1]

    def check_end(self):
        for step in range(1, self.newest + 1):
            if step not in self.steps:
                self.violations.append(f"step {step} was lost")
        if self.violations:
            return
        if not self.finished:
            self.violations.append("no worker finished")
        for pid, step in self.finished.items():
            if step != self.newest:
                self.violations.append(f"worker {pid} finished at step {step}, not {self.newest}")
