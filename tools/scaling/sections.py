"""The sections of docs/scaling.md: which commands give their rows, their tables and their plots."""

import time

from chart import Group, Panel, bars, lines
from units import MIB, figures, size, table

ALL_LINKED = "ELASTIC_ALL_LINKED=10000"


class Section:
    programs = ()
    root = False

    def __init__(self, folder):
        self.folder = folder  # with the programs

    def program(self, name):
        return f"{self.folder}/{name}"

    def verdicts(self, rows):
        return []


class Membership(Section):
    name = "membership"
    title = "View changes of workers without a data plane"

    def measure(self, commands, quick):
        rows = []
        for workers in (50, 100) if quick else (1000, 2000, 10000):
            more = ["--deaths", "5", "--idle-s", "1"] if quick else ["--idle-s", "9"]
            words = [self.program("elastic-swarm"), "--workers", str(workers), *more]
            rows += commands.report(words)[1]["results"]
        return rows

    def tables(self, rows):
        header = ["workers", "all in one view, s", "server, idle, % of a core", "one death, s",
                  "of a core for the server, s", "bytes to each other", "many deaths, s",
                  "server killed, all back, s", "evicted", "joiners, s"]
        return table(header, [
            [f"{row['workers']:,}", figures(row["form_s"]), figures(row["idle_cpu_percent"]),
             figures(row["death_s"]), figures(row["death_server_s"]),
             figures(row["bytes_per_member_death"]),
             f"{figures(row['deaths_s'])} for {row['deaths']}, rounds: {row['deaths_rounds']}",
             figures(row["server_return_s"]), str(row["evicted"]),
             f"{figures(row['join_s'])} for {row['joiners']}"] for row in rows]) + "\n"

    def chart(self, rows):
        phases = {"form_s": "forming", "death_s": "one death", "deaths_s": "many deaths",
                  "server_return_s": "server back", "join_s": "joiners"}
        return bars(self.title, "s", [
            Group(title, {f"{row['workers']:,} workers": row[key] for row in rows})
            for key, title in phases.items()])


class Starts(Section):
    name = "starts"
    title = "From the start to the end of real workers that make one allreduce"

    def measure(self, commands, quick):
        rows = []
        cases = [(4, "shm", False)] if quick else [
            (workers, transport, False) for workers in (64, 128) for transport in ("shm", "tcp")]
        cases += [] if quick else [(64, "shm", True), (64, "tcp", True)]
        for workers, transport, all_linked in cases:
            words = ["env", f"ELASTIC_TRANSPORT={transport}", *([ALL_LINKED] if all_linked else []),
                     self.program("elasticrun"), "-np", str(workers),
                     self.program("hello_allreduce")]
            began = time.monotonic()
            printed = commands.run(words)
            took = time.monotonic() - began
            right = f"the sum over {workers} workers is {workers * (workers + 1) // 2}"
            rows.append({"workers": workers, "transport": transport, "all_linked": all_linked,
                         "seconds": took,
                         "right": sum(line.endswith(right) for line in printed.splitlines())})
        return rows

    def links(self, row):
        return row["transport"] + (", all linked with all" if row["all_linked"] else "")

    def tables(self, rows):
        return table(["links", "workers", "time, s", "workers with the right sum"], [
            [self.links(row), str(row["workers"]), figures(row["seconds"]), str(row["right"])]
            for row in rows]) + "\n"

    def chart(self, rows):
        return bars(self.title, "s", [
            Group(f"{row['workers']} workers, {row['transport']}", {
                "all linked with all" if row["all_linked"] else "linked as needed": row["seconds"]})
            for row in rows])


class Deaths(Section):
    name = "deaths"
    title = "From a SIGKILL to the result on the survivors"

    def measure(self, commands, quick):
        rows = []
        size_and_runs = ["--np", "4", "--runs", "1"] if quick else ["--np", "32", "--runs", "10"]
        for transport in ("shm", "tcp"):
            for all_linked in (False, True):
                words = [*(["env", ALL_LINKED] if all_linked else []),
                         self.program("elastic-bench"), "recovery", *size_and_runs, "--bytes", "4K",
                         "--seed", "1", "--transport", transport]
                row, = commands.report(words)[1]["results"]
                kept = ("ranks", "runs", "transport", "return_p50_ms", "return_max_ms",
                        "change_p50_ms", "change_max_ms", "relink_p50_ms", "replay_p50_ms",
                        "undisturbed_ms")
                rows.append({**{key: row[key] for key in kept}, "all_linked": all_linked})
        return rows

    def tables(self, rows):
        header = ["links", "workers", "runs", "same call returned, p50", "max",
                  "all in the new view, p50", "max", "of which links, p50", "a call undisturbed"]
        keys = ("return_p50_ms", "return_max_ms", "change_p50_ms", "change_max_ms",
                "relink_p50_ms", "undisturbed_ms")
        return "Milliseconds:\n\n" + table(header, [
            [row["transport"] + (", all linked with all" if row["all_linked"] else ""),
             str(row["ranks"]), str(row["runs"]), *(figures(row[key]) for key in keys)]
            for row in rows]) + "\n"

    def chart(self, rows):
        return bars(self.title, "ms", [
            Group(row["transport"] + (", all linked" if row["all_linked"] else ""),
                  {"same call returned, p50": row["return_p50_ms"],
                   "all in the new view, p50": row["change_p50_ms"],
                   "a call undisturbed": row["undisturbed_ms"]}) for row in rows])


class Hosts(Section):
    """Calculated by elastic-bench model."""
    name = "hosts"
    title = "Calculated allreduces on c5n.18xlarge hosts, one rank on each"
    calculated = True
    WAYS = {"elastic as it is": (), "the network alone, 16 flows": ("--ignore-processor",
                                                                    "--flows", "16")}

    def measure(self, commands, quick):
        rows = []
        for way, options in self.WAYS.items():
            for hosts in (2, 4) if quick else (2, 4, 8, 16, 32, 64, 128, 256):
                words = [self.program("elastic-bench"), "model", "--hosts", str(hosts), "--network",
                         "c5n.18xlarge", "-b", "64M", "-e", "1G", "-f", "16", *options]
                rows += [{"way": way, "hosts": hosts, **row}
                         for row in commands.report(words)[1]["results"]]
        return rows

    def tables(self, rows):
        header = ["as if", "hosts", "size", "algorithm", "time, ms", "busbw, GB/s",
                  "share of the line, %", "limit"]
        return table(header, [
            [row["way"], str(row["hosts"]), size(row["bytes"]), row["algorithm"],
             figures(row["us"] / 1e3), figures(row["busbw_gbs"]), figures(100 * row["share"]),
             row["limit"]] for row in rows]) + "\n"

    def chart(self, rows):
        return lines(self.title, [
            Panel(size(count), "share of the line, %",
                  {way: [(row["hosts"], 100 * row["share"]) for row in rows
                         if (row["way"], row["bytes"]) == (way, count)] for way in self.WAYS},
                  linear=True, across="hosts") for count in (64 * MIB, 1024 * MIB)])
