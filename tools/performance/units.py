"""Numbers as a reader is given them, and what is said of bars."""

import enum

KIB, MIB = 2**10, 2**20


def size(count):
    for unit, name in ((2**30, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} B"


def figures(value):
    """Three of them, and never an exponent."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(header, rows):
    """Markdown; the first column is text, the others are numbers."""
    lines = [header, ["---"] + ["--:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


class Verdict(enum.Enum):
    """Of a bar. What is beyond was missed, and cannot be met on that machine."""
    MET = "yes"
    BEYOND = "no"
    MISSED = "**no**"


def judged(met):
    return Verdict.MET if met else Verdict.MISSED
