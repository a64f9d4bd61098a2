"""What a death and a joiner cost those that stay."""

from chart import Group, bars
from units import figures, table

PHASES = ("detect", "freeze", "decide", "relink", "replay")


class Recovery:
    name = "recovery"
    title = "From a fault to the result on the survivors"
    programs = ()
    root = False

    def measure(self, commands, quick):
        rows = []
        for fault in ("sigkill", "two"):
            words = ["build/bin/elastic-bench", "recovery", "--np", "4", "--bytes", "4M", "--fault",
                     fault, "--runs", "5" if quick else "25", "--seed", "1"]
            rows += commands.report(words)[1]["results"]
        kept = ("fault", "ranks", "bytes", "runs", "p50_ms", "p99_ms", "return_p50_ms",
                "return_p99_ms", "undisturbed_ms", *(f"{phase}_p50_ms" for phase in PHASES))
        return [{key: row[key] for key in kept} for row in rows]

    def verdicts(self, rows):
        return []

    def tables(self, rows):
        header = ["fault", "runs", "return, p50", "return, p99", "recovery, p50", "recovery, p99",
                  "a call undisturbed", *PHASES]
        return "Milliseconds:\n\n" + table(header, [
            [row["fault"], str(row["runs"]),
             *(figures(row[key]) for key in ("return_p50_ms", "return_p99_ms", "p50_ms", "p99_ms",
                                             "undisturbed_ms")),
             *(figures(row[f"{phase}_p50_ms"]) for phase in PHASES)] for row in rows]) + "\n"

    def chart(self, rows):
        return bars(self.title, "ms", [
            Group(row["fault"], {"return, p50": row["return_p50_ms"],
                                 "return, p99": row["return_p99_ms"],
                                 "a call undisturbed": row["undisturbed_ms"]}) for row in rows])


class Join:
    name = "join"
    title = "Pause of the members while a joiner receives the state"
    programs = ()
    root = False

    def measure(self, commands, quick):
        words = ["build/bin/elastic-bench", "join", "--np", "4", "--state-bytes",
                 "64M" if quick else "256M", "--runs", "2" if quick else "8"]
        kept = ("np", "state_bytes", "runs", "gap_p50_ms", "gap_max_ms", "join_p50_ms",
                "broadcast_ms", "ratio")
        return [{key: row[key] for key in kept} for row in commands.report(words)[1]["results"]]

    def verdicts(self, rows):
        return []

    def tables(self, rows):
        header = ["workers", "state, MiB", "runs", "gap, p50", "gap, max", "join, p50", "broadcast",
                  "gap : broadcast"]
        return "Milliseconds:\n\n" + table(header, [
            [str(row["np"]), f"{row['state_bytes'] / 2**20:g}", str(row["runs"]),
             *(figures(row[key]) for key in ("gap_p50_ms", "gap_max_ms", "join_p50_ms",
                                             "broadcast_ms", "ratio"))] for row in rows]) + "\n"

    def chart(self, rows):
        return bars(self.title, "ms", [
            Group(f"{row['np']} workers", {"gap, p50": row["gap_p50_ms"],
                                           "broadcast": row["broadcast_ms"],
                                           "join, p50": row["join_p50_ms"]}) for row in rows])
