"""What a section is measured on and with."""

import os
import pathlib
import platform
import re
import resource
import subprocess
import time


def first_line(*command):
    try:
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return (printed.splitlines() or [None])[0]


def content(file):
    try:
        return pathlib.Path(file).read_text()
    except OSError:
        return ""


def found(pattern, text):
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1).strip() if match else None


def compiler(root):
    program = found(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", content(root / "build" / "CMakeCache.txt"))
    return first_line(program, "--version") if program else None


def processor_ticks():
    """Of all processors since the start: those with work but for interrupts, and all."""
    user, nice, system, idle, waiting, hard, soft, stolen = (
        int(one) for one in content("/proc/stat").splitlines()[0].split()[1:9])
    busy = user + nice + system + stolen
    return busy, busy + idle + waiting + hard + soft


def busy_percent():
    """How much of the processors others use in a second before something is measured."""
    busy, total = processor_ticks()
    time.sleep(1)
    busy_then, total_then = processor_ticks()
    return round(100 * (busy_then - busy) / max(total_then - total, 1))


class OtherWork:
    """What other programs use of the processors from now on, or a hypervisor takes of them. Our own
    programs are left out as soon as they have ended; interrupts, which may be for them, are, too."""

    def __init__(self):
        self.busy, self.total, self.own = self.now()

    def now(self):
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own = sum(each.ru_utime + each.ru_stime for each in used) * os.sysconf("SC_CLK_TCK")
        return *processor_ticks(), own

    def percent(self):
        busy, total, own = (now - then for now, then in
                            zip(self.now(), (self.busy, self.total, self.own)))
        return max(0, round(100 * (busy - own) / max(total, 1)))


def facts(root):
    """None where something cannot be found out."""
    gloo = first_line("dpkg-query", "-W", "-f=${Version}", "libgloo-dev")
    iperf3 = first_line("iperf3", "--version")
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": first_line("git", "-C", str(root), "rev-parse", "--short=12", "HEAD"),
        "cores": os.cpu_count(),
        "cpu": found(r"^model name\s*: (.*)$", content("/proc/cpuinfo")),
        "kernel": f"{platform.system()} {platform.release()}",
        "congestion": content("/proc/sys/net/ipv4/tcp_congestion_control").strip() or None,
        "compiler": compiler(root),
        "mpi": first_line("mpirun", "--version"),
        "gloo": f"Gloo {gloo}" if gloo else None,
        "iperf3": found(r"(iperf \S+)", iperf3) if iperf3 else None,
        "busy_percent": busy_percent(),
    }


def sentence(machine):
    """The facts for a reader."""
    parts = [f"{machine['cores']} cores, {machine['cpu']}" if machine["cpu"] else
             f"{machine['cores']} cores", machine["kernel"]]
    if machine["congestion"]:
        parts.append(f"TCP congestion control {machine['congestion']}")
    parts += [machine[key] for key in ("compiler", "mpi", "gloo", "iperf3")]
    text = f"Measured {machine['date']}"
    text += f" at commit {machine['commit']}" if machine["commit"] else ""
    text += " on " + "; ".join(part for part in parts if part) + "."
    if machine["busy_percent"] > 5:
        text += (f" **The processors were {machine['busy_percent']} % busy with other work when it "
                 "began: do not trust these figures.**")
    elif machine.get("others_percent", 0) > 5:
        text += (f" **Other work had {machine['others_percent']} % of the processors meanwhile: do "
                 "not trust these figures.**")
    return text


def calculated(machine):
    """The same for a section of which nothing was measured."""
    at = f" at commit {machine['commit']}" if machine["commit"] else ""
    return f"Calculated {machine['date']}{at}. **Nothing of this was measured.**"
