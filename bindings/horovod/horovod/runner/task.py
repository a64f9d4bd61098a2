"""A worker of ``horovod.run``: calls the pickled function, and leaves its result under the number
that its launcher gave it, as ranks change when others end."""

from __future__ import annotations

import os
import pathlib
import sys

import cloudpickle


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    func, args, kwargs = cloudpickle.loads((folder / "call").read_bytes())
    rank = int(os.environ.get("RANK", 0))
    failed = folder / f"failed.{rank}"
    whole = folder / f"part.{rank}"
    try:
        whole.write_bytes(cloudpickle.dumps(func(*args, **kwargs)))
    except BaseException as error:
        # The others may well go on without this worker. One that was asked to leave ends with 0.
        if not isinstance(error, SystemExit) or error.code:
            failed.touch()
        raise
    whole.rename(folder / f"result.{rank}")
    failed.unlink(missing_ok=True)  # of the worker that this one replaces


if __name__ == "__main__":
    main()
