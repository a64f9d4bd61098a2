"""What it costs that an allreduce can be recovered, by the same backend without."""

from chart import Panel, lines
from units import figures, judged, size, table

BARS = {False: 1.05, True: 1.40}  # by in_place
LAYOUTS = {"out_of_place": False, "in_place": True}


def rows_of(benchmarks):
    """Names are as in in_place/recoverable/131072/real_time/threads:2."""
    times = {}
    for one in benchmarks:
        layout, backend, count = one["run_name"].split("/")[:3]
        times.setdefault((int(count), LAYOUTS[layout]), {})[f"{backend}_us"] = one["call_us"]
    return [{"bytes": at[0], "in_place": at[1], **times[at]} for at in sorted(times)]


def ratio(row):
    return row["recoverable_us"] / row["without_us"]


class Recoverable:
    name = "recoverable"
    title = "The cost of recoverability"
    programs = ()
    root = False

    def measure(self, commands, quick):
        words = ["build/bin/recoverable_bench",
                 f"--benchmark_repetitions={5 if quick else 25}", "--benchmark_min_time=0.02",
                 "--benchmark_enable_random_interleaving=true",
                 "--benchmark_report_aggregates_only=true"]
        report = commands.report(words, "--benchmark_out=")[1]
        return rows_of([one for one in report["benchmarks"] if one["aggregate_name"] == "median"])

    @staticmethod
    def met(row):
        return ratio(row) <= BARS[row["in_place"]]

    def verdicts(self, rows):
        return [judged(self.met(row)) for row in rows]

    def tables(self, rows):
        header = ["size", "result", "recoverable, µs", "without, µs", "ratio", "bar", "met"]
        return table(header, [
            [size(row["bytes"]), "in place" if row["in_place"] else "out of place",
             figures(row["recoverable_us"]), figures(row["without_us"]), f"{ratio(row):.2f}",
             f"{BARS[row['in_place']]:g}", judged(self.met(row)).value] for row in rows]) + "\n"

    def chart(self, rows):
        series = {name: [(row["bytes"], ratio(row)) for row in rows if row["in_place"] == in_place]
                  for name, in_place in (("out of place", False), ("in place", True))}
        return lines(f"{self.title}, 2 ranks over shared memory",
                     [Panel("time by that without", "ratio", series, linear=True)])
