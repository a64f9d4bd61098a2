"""Allreduces between hosts whose lines have a given rate, as the share of what a line carries."""

import re

from chart import Panel, lines
from units import figures, judged, size, table

BAR = 0.94
# Hosts with a worker each, and the rate of each host's line, as tc has it.
NETWORKS = ((4, "1gbit"), (2, "4gbit"))
IPERF3 = re.compile(r"^iperf3, (one way|both ways, each): .* ([0-9.]+) GB/s$", re.MULTILINE)


def title_of(row):
    return f"{row['hosts']} hosts, {row['rate']}"


def share(row):
    return row["busbw_gbs"] / row["iperf3_gbs"]


class Network:
    name = "network"
    title = "Hosts on lines with a shaped rate"
    programs = ("ip", "tc", "iperf3")
    root = True

    def measure(self, commands, quick):
        rows = []
        for hosts, rate in NETWORKS:
            words = ["tools/netlab", "--hosts", str(hosts), "--rate", rate,
                     "--congestion", "reno", "--measure", "--np", str(hosts), "--",
                     "build/bin/elastic-bench", "allreduce", "-b", "16M",
                     "-e", "16M" if quick else "256M", "-f", "4", "-n", "5", "-w", "2"]
            printed, report = commands.report(words)
            # The more of both, which is the harder to reach.
            carried = max(float(rate) for _, rate in IPERF3.findall(printed))
            rows += [{"hosts": hosts, "rate": rate, "bytes": row["bytes"],
                      "in_place": row["in_place"], "median_us": row["median_us"],
                      "busbw_gbs": row["busbw_gbs"], "iperf3_gbs": carried}
                     for row in report["results"]]
        return rows

    def verdicts(self, rows):
        return [judged(share(row) >= BAR) for row in rows]

    def tables(self, rows):
        header = ["hosts", "line", "size", "result", "time, ms", "busbw, GB/s", "iperf3, GB/s",
                  "share", "bar", "met"]
        return table(header, [
            [str(row["hosts"]), row["rate"], size(row["bytes"]),
             "in place" if row["in_place"] else "out of place", figures(row["median_us"] / 1e3),
             f"{row['busbw_gbs']:.4f}", f"{row['iperf3_gbs']:.4f}", f"{share(row):.1%}",
             f"{BAR:.0%}", judged(share(row) >= BAR).value] for row in rows]) + "\n"

    def chart(self, rows):
        series = {}
        for row in rows:
            if row["in_place"]:
                series.setdefault(title_of(row), []).append((row["bytes"], 100 * share(row)))
        sizes = sorted({row["bytes"] for row in rows})
        series["bar"] = [(one, 100 * BAR) for one in sizes]
        return lines(self.title, [Panel("Bus bandwidth by iperf3's, in place", "%", series,
                                        linear=True)])
