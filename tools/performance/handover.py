"""What it takes to hand data from one core to another: the limit of what ranks of one host can do."""

from chart import Group, bars
from units import figures, size, table

WAYS = {"cached": "temporal stores", "past_caches": "non-temporal stores",
        "by_the_kernel": "copied by the kernel"}
PARTS = ("writing", "reading", "both")


def quantile(samples, share):
    return sorted(samples)[round(share * (len(samples) - 1))]


def rows_of(benchmarks):
    """Names are as in past_caches/65536/real_time."""
    samples = {}
    for one in benchmarks:
        way, count = one["run_name"].split("/")[:2]
        parts = samples.setdefault((int(count), way), {part: [] for part in PARTS})
        parts["writing"].append(one["writing_us"])
        parts["reading"].append(one["reading_us"])
        parts["both"].append(one["writing_us"] + one["reading_us"])
    return [{"bytes": count, "way": way,
             **{f"{part}_p{percent}_us": quantile(parts[part], percent / 100)
                for part in PARTS for percent in (10, 50, 90)}}
            for (count, way), parts in sorted(samples.items())]


class Handover:
    name = "handover"
    title = "Core to core"
    programs = ()
    root = False

    def measure(self, commands, quick):
        words = ["build/bin/core_to_core_bench", f"--benchmark_repetitions={20 if quick else 200}",
                 "--benchmark_min_time=0.01", "--benchmark_enable_random_interleaving=true"]
        report = commands.report(words, "--benchmark_out=")[1]
        return rows_of([one for one in report["benchmarks"] if one["run_type"] == "iteration"])

    def verdicts(self, rows):
        return []

    def tables(self, rows):
        header = ["size", "by"] + [f"{part}, p{percent}" for part in PARTS
                                       for percent in (10, 50, 90)]
        return "Microseconds:\n\n" + table(header, [
            [size(row["bytes"]), WAYS[row["way"]]]
            + [figures(row[f"{part}_p{percent}_us"]) for part in PARTS for percent in (10, 50, 90)]
            for row in rows]) + "\n"

    def chart(self, rows):
        return bars(f"{self.title}, writing and reading, p50", "µs", [
            Group(size(count), {WAYS[row["way"]]: row["both_p50_us"] for row in rows
                                if row["bytes"] == count})
            for count in dict.fromkeys(row["bytes"] for row in rows)])
