"""Measures a section: whether it can be, its rows, and where they come from."""

import os
import shutil
import sys

from commands import CommandFailed, Commands
from machine import OtherWork, facts

SECONDS = 600  # that a section may take: none does, unless something hangs


def missing(section):
    """Why a section cannot be measured here."""
    absent = [program for program in section.programs if shutil.which(program) is None]
    if absent:
        return f"{absent[0]} is not installed"
    if section.root and os.geteuid() != 0:
        return "it needs root, for network namespaces"
    return None


def measure(section, quick, root, tool):
    """A section's result, and whether it is no failure."""
    if reason := missing(section):
        print(f"{section.name}: not measured: {reason}", flush=True)
        return {"not_measured": reason}, True
    print(f"{section.name}: {section.title}", flush=True)
    machine = facts(root)
    commands = Commands(root, SECONDS)
    others = OtherWork()
    try:
        rows = section.measure(commands, quick)
    except CommandFailed as failure:
        print(f"{failure.output}\n{tool}: {section.name}: {failure}", file=sys.stderr)
        return {"not_measured": str(failure)}, False
    machine["others_percent"] = others.percent()
    return {"quick": quick, "machine": machine, "commands": commands.ran, "rows": rows}, True
