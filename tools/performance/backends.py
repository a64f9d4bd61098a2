"""What is compared, and how its ranks are started."""

import os

NATIVE = "native"
# Of `elastic-bench allreduce --backend`: all are measured in the same processes, in turns.
BACKENDS = (NATIVE, "mpi:direct", "gloo:ring", "gloo:halving")
# Beside them, and no peers: the least that an allreduce can cost, in as many ways as there are. At a
# size the fastest is "bare".
BARE = "bare"
BARE_BY_TRANSPORT = {
    "shm": ("bare:cached", "bare:streaming", "bare:kept-cached", "bare:kept-streaming"),
    "tcp": ("bare:tcp",)}
# Likewise, of `elastic-bench fusion`: those that elastic can fuse tensors for.
FUSING_BACKENDS = (NATIVE, "gloo", "mpi")


def is_bare(backend):
    return backend.startswith(f"{BARE}:")


def bounds(backends, in_place):
    """Those of the bare ways that are a bound: in place elastic has to keep what it overwrites."""
    bare = [name for name in backends if is_bare(name)]
    keeping = [name for name in bare if name.startswith(f"{BARE}:kept-")]
    if in_place and keeping:
        return keeping
    return [name for name in bare if name not in keeping]


def mpirun(ranks, *options):
    """The launcher of ranks on this machine, which are free to run on any core."""
    words = ["mpirun", "--bind-to", "none", "-np", str(ranks), *options]
    return words + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
