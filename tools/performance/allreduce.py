"""Allreduces of all sizes, by elastic, by its peers, and by the least that it takes."""

import math
from dataclasses import dataclass

from backends import BACKENDS, BARE, BARE_BY_TRANSPORT, NATIVE, bounds, is_bare, mpirun
from chart import Panel, lines
from units import KIB, MIB, Verdict, figures, size, table

KEPT = ("backend", "bytes", "in_place", "median_us", "min_us", "busbw_gbs")
PLACES = {False: "Result in another tensor", True: "Result in place"}


@dataclass(frozen=True)
class Bar:
    """What is wanted of sizes from `least` to `most` bytes."""
    least: int
    most: float
    out_of_place: float  # the best peer's time by ours, with the result in another tensor
    in_place: float
    longest_us: float = math.inf

    def wanted(self, in_place):
        return self.in_place if in_place else self.out_of_place

    def text(self, in_place):
        limit = f", {self.longest_us:g} µs" if self.longest_us < math.inf else ""
        return f"{self.wanted(in_place):g}{limit}"


@dataclass(frozen=True)
class Comparison:
    """All backends at one size."""
    bytes: int
    in_place: bool
    native: dict  # its row
    peers: dict  # each one's median time, in microseconds
    bare: float  # likewise, of the least protocol; None where it was not measured
    bar: Bar

    @property
    def best(self):
        return min(self.peers, key=self.peers.get)

    @property
    def ratio(self):
        return self.peers[self.best] / self.native["median_us"]

    @property
    def verdict(self):
        if self.bar is None:
            return None
        if self.meets(self.native["median_us"]):
            return Verdict.MET
        beyond = self.bare is not None and not self.meets(self.bare)
        return Verdict.BEYOND if beyond else Verdict.MISSED

    def meets(self, time_us):
        return (self.peers[self.best] / time_us >= self.bar.wanted(self.in_place)
                and time_us <= self.bar.longest_us)

    def verdict_text(self):
        if self.verdict is None:
            return ""
        if self.verdict != Verdict.BEYOND:
            return self.verdict.value
        if self.bare > self.bar.longest_us:
            return f"{self.verdict.value}: bare {figures(self.bare)} µs"
        return f"{self.verdict.value}: bare {self.peers[self.best] / self.bare:.2f}"


def compare(rows, bars):
    """The comparisons that rows of all backends allow, by place and size."""
    compared = []
    for at in sorted({(row["in_place"], row["bytes"]) for row in rows}):
        own = {row["backend"]: row for row in rows if (row["in_place"], row["bytes"]) == at}
        bar = next((bar for bar in bars if bar.least <= at[1] <= bar.most), None)
        times = {name: row["median_us"] for name, row in own.items() if name != NATIVE}
        peers = {name: time for name, time in times.items() if not is_bare(name)}
        bare = min((times[name] for name in bounds(times, at[0])), default=None)
        if NATIVE in own and peers:
            compared.append(Comparison(at[1], at[0], own[NATIVE], peers, bare, bar))
    return compared


def backends_of(rows):
    return list(dict.fromkeys(row["backend"] for row in rows if not is_bare(row["backend"])))


def bare_rows(rows):
    """Of each size and place the fastest bare way, as that of one backend."""
    ways = {}
    for row in rows:
        ways.setdefault((row["in_place"], row["bytes"]), {})[row["backend"]] = row
    fastest = []
    for (in_place, _), own in ways.items():
        bare = [own[name] for name in bounds(own, in_place)]
        if bare:
            fastest.append({**min(bare, key=lambda row: row["median_us"]), "backend": BARE})
    return fastest


def table_line(one, peers):
    return [size(one.bytes), figures(one.native["median_us"]), figures(one.native["busbw_gbs"]),
            *(figures(one.peers.get(peer)) for peer in peers), figures(one.bare),
            f"{one.ratio:.2f}", figures(one.bare and one.bare / one.native["median_us"]),
            one.bar.text(one.in_place) if one.bar else "", one.verdict_text()]


@dataclass(frozen=True)
class Sizes:
    """Those of one command: they take so many calls each."""
    first: str
    last: str
    factor: int
    calls: int
    warmup: int


@dataclass(frozen=True)
class Allreduce:
    name: str
    title: str
    ranks: int
    transport: str
    sizes: tuple
    bars: tuple
    before: tuple = ()  # words before mpirun
    mpi: tuple = ()  # further words of mpirun
    programs: tuple = ("mpirun",)
    root: bool = False

    def measure(self, commands, quick):
        rows = []
        backends = BACKENDS + BARE_BY_TRANSPORT[self.transport]
        for sizes in self.sizes[:-1] if quick else self.sizes:
            calls = max(4, sizes.calls // (8 if quick else 1))
            words = [*self.before, *mpirun(self.ranks, *self.mpi), "build/bin/elastic-bench",
                     "allreduce", "--backend", ",".join(backends), "--transport", self.transport,
                     "-b", sizes.first, "-e", sizes.last, "-f", str(sizes.factor),
                     "-n", str(calls), "-w", str(sizes.warmup)]
            rows += commands.report(words)[1]["results"]
        return [{key: row[key] for key in KEPT} for row in rows]

    def verdicts(self, rows):
        return [one.verdict for one in compare(rows, self.bars) if one.verdict is not None]

    def tables(self, rows):
        text = ""
        peers = [name for name in backends_of(rows) if name != NATIVE]
        header = ["size", "elastic", "busbw, GB/s", *peers, BARE, "best peer : elastic",
                  "bare : elastic", "bar", "met"]
        for in_place, title in PLACES.items():
            text += f"{title}; times in µs:\n\n" + table(header, [
                table_line(one, peers) for one in compare(rows, self.bars)
                if one.in_place == in_place]) + "\n"
        return text

    def chart(self, rows):
        rows = [row for row in rows if not is_bare(row["backend"])] + bare_rows(rows)

        def series(column):
            return {name: [(row["bytes"], row[column]) for row in rows
                           if row["backend"] == name and row["in_place"]]
                    for name in backends_of(rows)}
        return lines(f"{self.title}, in place",
                     [Panel("Time of a call, median", "µs", series("median_us")),
                      Panel("Bus bandwidth", "GB/s", series("busbw_gbs"), linear=True)])


SMALL_TO_LARGE = (Sizes("8", "1K", 128, 20000, 500), Sizes("32K", "1M", 2, 1200, 20),
                  Sizes("8M", "64M", 8, 40, 2), Sizes("256M", "256M", 2, 12, 1))
# More ranks than cores: what spins waits for its turn, so that small calls take long, too.
CROWDED = (Sizes("8", "1K", 128, 2000, 50), Sizes("32K", "1M", 2, 200, 5),
           Sizes("8M", "64M", 8, 16, 1), Sizes("256M", "256M", 2, 8, 1))

SHM2 = Allreduce(
    "shm2", "2 ranks over shared memory", 2, "shm", SMALL_TO_LARGE,
    (Bar(8, KIB, 1.0, 1.0, longest_us=0.3), Bar(32 * KIB, MIB, 1.8, 1.8),
     Bar(8 * MIB, 8 * MIB, 2.5, 2.0), Bar(64 * MIB, math.inf, 4.5, 3.5)))
SHM4 = Allreduce(
    "shm4", "4 ranks over shared memory", 4, "shm", CROWDED,
    (Bar(8 * MIB, math.inf, 2.5, 2.5), Bar(0, 8 * MIB - 1, 1.0, 1.0)),
    mpi=("--oversubscribe",))
# All on the same congestion control, which only a namespace can set for the peers. Open MPI leaves
# the loopback device out unless it is named.
TCP2 = Allreduce(
    "tcp2", "2 ranks over TCP on loopback", 2, "tcp", SMALL_TO_LARGE,
    (Bar(0, 32 * KIB, 1.2, 1.2), Bar(MIB, 8 * MIB, 1.2, 1.2), Bar(64 * MIB, math.inf, 2.0, 2.0)),
    before=("tools/netlab", "--hosts", "1", "--congestion", "reno", "--"),
    mpi=("--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"),
    programs=("mpirun", "ip"), root=True)
