"""The gradients of networks: fused, as one allreduce of as many bytes, and a call for each."""

import re

from backends import FUSING_BACKENDS, NATIVE, mpirun
from chart import Group, bars
from machine import content
from units import MIB, figures, judged, table

KEPT = ("model", "tensors", "bytes", "backend", "step", "median_us", "min_us", "by_whole",
        "agreement_us")
BAR = 1.15  # of resnet50: fused by one call of as many bytes
AGREEMENT_BAR = 100  # us, of a named allreduce of one element: no agreement takes longer
STEPS = ("fused", "whole", "blocking")


def models(quick):
    """Each with its steps of a kind: few where they are large, none without the memory."""
    available = re.search(r"^MemAvailable: *(\d+) kB", content("/proc/meminfo"), re.MULTILINE)
    roomy = available is None or int(available.group(1)) * 1024 > 16 * 1024 * MIB
    large = [("bert-large", 4)] if roomy and not quick else []
    return [("resnet50", 8 if quick else 24), ("vgg16", 4 if quick else 8), *large]


class Fusion:
    name = "fusion"
    title = "The gradients of a network"
    programs = ("mpirun",)
    root = False

    def measure(self, commands, quick):
        rows = []
        for model, steps in models(quick):
            words = [*mpirun(2), "build/bin/elastic-bench", "fusion", "--backend",
                     ",".join(FUSING_BACKENDS), "--transport", "shm", "--model", model,
                     "-n", str(steps),
                     "-w", "1", "--turns", "2"]
            rows += commands.report(words)[1]["results"]
        return [{key: row[key] for key in KEPT} for row in rows]

    @staticmethod
    def met(row):
        judged = (row["backend"], row["model"], row["step"]) == (NATIVE, "resnet50", "fused")
        fast = row["by_whole"] <= BAR and (row["agreement_us"] or 0) <= AGREEMENT_BAR
        return fast if judged else None

    def verdicts(self, rows):
        return [judged(self.met(row)) for row in rows if self.met(row) is not None]

    def tables(self, rows):
        header = ["network", "tensors", "MiB", "backend", "fused, ms", "as one, ms",
                  "one by one, ms", "agree, µs", "fused : as one", "bar", "met"]
        lines = []
        for at in dict.fromkeys((row["model"], row["backend"]) for row in rows):
            own = {row["step"]: row for row in rows if (row["model"], row["backend"]) == at}
            fused, met = own["fused"], self.met(own["fused"])
            lines.append([at[0], str(fused["tensors"]), figures(fused["bytes"] / MIB), at[1],
                          *(figures(own[step]["median_us"] / 1e3) for step in STEPS),
                          figures(fused["agreement_us"]), f"{fused['by_whole']:.2f}",
                          "" if met is None else f"{BAR:g}",
                          "" if met is None else judged(met).value])
        return table(header, lines) + "\n"

    def chart(self, rows):
        groups = [Group(f"{model}, {backend}",
                        {row["step"]: row["median_us"] / 1e3 for row in rows
                         if (row["model"], row["backend"]) == (model, backend)})
                  for model, backend in dict.fromkeys((row["model"], row["backend"])
                                                      for row in rows)]
        return bars(f"{self.title}, 2 ranks over shared memory", "ms", groups)
