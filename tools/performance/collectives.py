"""The other collectives of all sizes, by elastic and by Open MPI."""

from dataclasses import dataclass

from backends import NATIVE, mpirun
from chart import Panel, lines
from units import figures, judged, size, table

PEER = "mpi:direct"
OPERATIONS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "alltoall", "gather", "scatter")
BAR = 0.95  # the peer's time by ours
EXCHANGES = """\
No call of elastic ends on a rank before all have entered it ([atomicity.md](atomicity.md)), so that the same call can
be completed after a death: a small call takes an exchange between all ranks. In a broadcast, a reduction to a root, a
gather or a scatter Open MPI waits for one message at most, and where data is small that takes less time than an
exchange."""
KEPT = ("bytes", "backend", "median_us")


@dataclass(frozen=True)
class Size:
    """A size and how many calls are timed of it."""
    name: str
    calls: int
    warmup: int


def compare(rows):
    """For each operation and size both times. Rows in place and out of place are the same call here."""
    times = {}
    for row in rows:
        at = times.setdefault((row["operation"], row["bytes"]), {})
        at[row["backend"]] = min(row["median_us"], at.get(row["backend"], row["median_us"]))
    return {at: own for at, own in times.items() if NATIVE in own and PEER in own}


def ratio(own):
    return own[PEER] / own[NATIVE]


@dataclass(frozen=True)
class Collectives:
    name: str
    title: str
    ranks: int
    transport: str
    sizes: tuple
    before: tuple = ()  # words before mpirun
    mpi: tuple = ()  # further words of mpirun
    programs: tuple = ("mpirun",)
    root: bool = False

    def measure(self, commands, quick):
        rows = []
        for operation in OPERATIONS:
            for one in self.sizes[:-1] if quick else self.sizes:
                calls = max(4, one.calls // (8 if quick else 1))
                words = [*self.before, *mpirun(self.ranks, *self.mpi), "build/bin/elastic-bench",
                         operation, "--apart", "--backend", f"{NATIVE},{PEER}",
                         "--transport", self.transport,
                         "-b", one.name, "-e", one.name, "-n", str(calls), "-w", str(one.warmup)]
                rows += [{"operation": operation, **{key: row[key] for key in KEPT}}
                         for row in commands.report(words)[1]["results"]]
        return rows

    def verdicts(self, rows):
        return [judged(ratio(own) >= BAR) for own in compare(rows).values()]

    def tables(self, rows):
        """A row for each operation, a column for each size: the peer's time by ours, and ours."""
        compared = compare(rows)
        sizes = sorted({bytes_ for _, bytes_ in compared})

        def cell(own):
            return f"{ratio(own):.2f} ({figures(own[NATIVE])})" if own else ""
        return (f"{EXCHANGES}\n\nOpen MPI's time by elastic's, and elastic's in µs, of calls that "
                "begin after a barrier, on the slowest rank:\n\n" +
                table(["", *map(size, sizes)],
                      [[operation, *(cell(compared.get((operation, bytes_))) for bytes_ in sizes)]
                       for operation in OPERATIONS]) + "\n")

    def chart(self, rows):
        series = {operation: [(at[1], ratio(own)) for at, own in compare(rows).items()
                              if at[0] == operation] for operation in OPERATIONS}
        return lines(self.title, [Panel("Open MPI's time by elastic's", "ratio", series)])


SIZES = (Size("8", 20000, 500), Size("1K", 20000, 500), Size("32K", 1200, 20),
         Size("256K", 400, 20), Size("2M", 100, 5), Size("64M", 10, 1))
CROWDED = (Size("8", 2000, 50), Size("1K", 2000, 50), Size("32K", 400, 20), Size("256K", 100, 5),
           Size("2M", 40, 2), Size("64M", 6, 1))

COLLECTIVES_SHM2 = Collectives(
    "collectives_shm2", "Other collectives, 2 ranks over shared memory", 2, "shm", SIZES)
COLLECTIVES_SHM4 = Collectives(
    "collectives_shm4", "Other collectives, 4 ranks over shared memory", 4, "shm", CROWDED,
    mpi=("--oversubscribe",))
COLLECTIVES_TCP2 = Collectives(
    "collectives_tcp2", "Other collectives, 2 ranks over TCP on loopback", 2, "tcp", CROWDED,
    before=("tools/netlab", "--hosts", "1", "--congestion", "reno", "--"),
    mpi=("--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"),
    programs=("mpirun", "ip"), root=True)
