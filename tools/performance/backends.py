"""What is compared, and how its ranks are started."""

import os

NATIVE = "native"
# Of `elastic-bench allreduce --backend`: all are measured in the same processes, in turns.
BACKENDS = (NATIVE, "mpi:direct", "gloo:ring", "gloo:halving")
# Beside them, and no peers: the least that an allreduce can cost, in as many ways as there are. At a
# size the fastest is "bare".
BARE = "bare"
BARE_BY_TRANSPORT = {"shm": ("bare:cached", "bare:streaming"), "tcp": ("bare:tcp",)}
# Likewise, of `elastic-bench fusion`: those that elastic can fuse tensors for.
FUSING_BACKENDS = (NATIVE, "gloo", "mpi")


def is_bare(backend):
    return backend.startswith(f"{BARE}:")


def mpirun(ranks, *options):
    """The launcher of ranks on this machine, which are free to run on any core."""
    words = ["mpirun", "--bind-to", "none", "-np", str(ranks), *options]
    return words + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
