"""The loops that reduce and copy, against memcpy of as many bytes in the same run."""

from chart import Group, bars
from units import figures, table

MEMCPY = "memcpy"


def row_of(benchmark):
    loop, size = benchmark["run_name"].rsplit("/", 1)  # as in sum/float/in_place/256K
    return {"loop": loop, "size": size, "gbs": benchmark["bytes_per_second"] / 1e9}


class Kernels:
    name = "kernels"
    title = "Reduction kernels"
    programs = ()
    root = False

    def measure(self, commands, quick):
        words = ["build/bin/kernel_bench", "--benchmark_filter=^sum|cpy|copy",
                 "--benchmark_repetitions=5", "--benchmark_min_time=0.05",
                 "--benchmark_enable_random_interleaving=true",
                 "--benchmark_report_aggregates_only=true"]
        if quick:
            words[1] = "--benchmark_filter=^sum/float|cpy"
        report = commands.report(words, "--benchmark_out=")[1]
        rows = [row_of(one) for one in report["benchmarks"] if one["aggregate_name"] == "median"]
        # They come in the order in which they were drawn.
        return sorted(rows, key=lambda row: (row["loop"] != MEMCPY, row["loop"], row["size"]))

    def verdicts(self, rows):
        return []

    def tables(self, rows):
        sizes = list(dict.fromkeys(row["size"] for row in rows))
        rates = {(row["loop"], row["size"]): row["gbs"] for row in rows}
        header = ["loop"]
        for size in sizes:
            header += [f"{size}, GB/s", "by memcpy"]
        lines = []
        for loop in dict.fromkeys(row["loop"] for row in rows):
            line = [f"`{loop}`"]
            for size in sizes:
                rate, memcpy = rates.get((loop, size)), rates.get((MEMCPY, size))
                line += [figures(rate), f"{rate / memcpy:.2f}" if rate and memcpy else ""]
            lines.append(line)
        return table(header, lines) + "\n"

    def chart(self, rows):
        loops = [loop for loop in dict.fromkeys(row["loop"] for row in rows)
                 if loop == MEMCPY or loop.startswith("sum/float/")]
        return bars(f"{self.title}, float, sum", "GB/s", [
            Group(size, {row["loop"]: row["gbs"] for row in rows
                         if row["size"] == size and row["loop"] in loops})
            for size in dict.fromkeys(row["size"] for row in rows)])
