"""Horovod's exceptions, and how errors of elastic become them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import elastic


class HorovodInternalError(RuntimeError):
    """A collective failed. ``__cause__`` is the error of elastic, if it is one."""


class HostsUpdatedInterrupt(RuntimeError):
    """Workers came or left: ``hvd.elastic.run`` calls the training function again."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("workers came or left since the last commit")
        self.skip_sync = skip_sync


@contextlib.contextmanager
def as_horovod_errors() -> Iterator[None]:
    """Errors of elastic leave as those that a script for Horovod expects. A wrong argument is a
    ValueError in both."""
    try:
        yield
    except elastic.InvalidArgumentError:
        raise
    except elastic.Error as error:
        raise HorovodInternalError(str(error)) from error
