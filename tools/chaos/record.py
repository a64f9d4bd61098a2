"""What the workers' traces say, and whether it can be."""

import json

# What all workers must say alike about a step.
AGREED = ("workers", "batch", "gamma", "rate", "loss", "parameter_hash")


class Recovery:
    """From a fault until the last survivor has finished a step in a later view."""

    def __init__(self, fault_ns, generation, members):
        self.fault_ns = fault_ns
        self.generation = generation
        self.members = members
        self.first = {}  # pid -> time of its first step after

    def add(self, pid, line):
        if pid in self.members and line["generation"] > self.generation:
            self.first.setdefault(pid, line["at_ns"])

    def milliseconds(self, job):
        times = [at for pid, at in self.first.items() if not job.by_pid(pid).struck]
        return (max(times) - self.fault_ns) / 1e6 if times else None


class Record:
    """Reads the traces as they grow."""

    def __init__(self, folder, job):
        self.folder = folder
        self.job = job
        self.offsets = {}
        self.steps = {}  # step -> (pid, line) that the others are held against
        self.latest = {}  # pid -> line
        self.recoveries = []
        self.generation = 0
        self.violations = []

    def holds_state(self, worker):
        """Whether a worker has done a step in the newest view, and since it last stood still. A worker
        that was evicted has not, until it has received the state again."""
        line = self.latest.get(worker.pid)
        return (line is not None and line["generation"] == self.generation
                and line["at_ns"] > worker.went_on_ns)

    def last_step(self):
        return max(self.steps, default=0)

    def read(self):
        """True when there was a new step."""
        before = self.last_step()
        for path in self.folder.glob("trace-*.jsonl"):
            with open(path, "rb") as file:
                file.seek(self.offsets.get(path, 0))
                data = file.read()
            whole = data[:data.rfind(b"\n") + 1]
            self.offsets[path] = self.offsets.get(path, 0) + len(whole)
            pid = int(path.stem.partition("-")[2])
            for line in whole.splitlines():
                self.add(pid, json.loads(line))
        return self.last_step() > before

    def add(self, pid, line):
        worker = self.job.by_pid(pid)
        step = line["step"]
        last = self.latest.get(pid)
        self.latest[pid] = line
        self.generation = max(self.generation, line["generation"])
        if last and step != last["step"] + 1:
            # A worker that was evicted receives the state again, from the step of the others.
            rejoined = worker.struck and step > last["step"]
            if not rejoined:
                self.violations.append(f"{worker.name}: step {step} after step {last['step']}")
        known_pid, known = self.steps.setdefault(step, (pid, line))
        if any(known[key] != line[key] for key in AGREED):
            self.compare(self.job.by_pid(known_pid), known, worker, line)
        for recovery in self.recoveries:
            recovery.add(pid, line)

    def compare(self, one, known, other, line):
        """Two workers disagree about a step. What the dead and the evicted have completed alone, in
        a view that is over, nobody else has seen."""
        step = line["step"]
        if other.struck and line["generation"] < known["generation"]:
            return
        if one.struck and known["generation"] < line["generation"]:
            self.steps[step] = (other.pid, line)
            return
        self.violations.append(
            f"step {step} differs: {one.name} has { {key: known[key] for key in AGREED} } in generation "
            f"{known['generation']}, {other.name} has { {key: line[key] for key in AGREED} } in "
            f"generation {line['generation']}")

    def expect_recovery(self, fault_ns):
        """From now on looks for the first step after a fault that somebody was lost in."""
        self.recoveries.append(Recovery(fault_ns, self.generation, set(self.latest)))

    def recoveries_ms(self):
        times = (recovery.milliseconds(self.job) for recovery in self.recoveries)
        return sorted(time for time in times if time is not None)

    def check_steps(self):
        for step in range(1, self.last_step() + 1):
            if step not in self.steps:
                self.violations.append(f"step {step} was lost")

    def check_reports(self):
        """Of the workers that were there when the job was stopped. The number of them."""
        reports = [json.loads(path.read_text()) for path in self.folder.glob("report-*.json")]
        last = [report for report in reports if report["outcome"] == "stopped" and report["rank"] >= 0]
        for report in last:
            who = self.job.by_pid(report["pid"]).name
            if report["samples_missed"] or report["samples_used_twice"]:
                self.violations.append(f"{who}: {report['samples_missed']} samples missed, "
                                       f"{report['samples_used_twice']} used twice")
            for key in ("steps", "parameter_hash"):
                if report[key] != last[0][key]:
                    self.violations.append(f"{who} ends with {key} {report[key]}, another with "
                                           f"{last[0][key]}")
        return len(last)
