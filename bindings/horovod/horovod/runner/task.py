"""A worker of ``horovod.run``: calls the pickled function, and leaves its result by rank."""

from __future__ import annotations

import os
import pathlib
import sys

import cloudpickle

from horovod.common import basics


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    func, args, kwargs = cloudpickle.loads((folder / "call").read_bytes())
    result = func(*args, **kwargs)
    rank = basics.rank() if basics.is_initialized() else int(os.environ.get("RANK", 0))
    whole = folder / f"part.{rank}"
    whole.write_bytes(cloudpickle.dumps(result))
    whole.rename(folder / f"result.{rank}")


if __name__ == "__main__":
    main()
