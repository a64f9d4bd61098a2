"""The console scripts: the programs that the wheel carries."""

import os
import pathlib
import sys


def _become(name: str) -> None:
    program = pathlib.Path(__file__).with_name("bin") / name
    os.execv(program, [name, *sys.argv[1:]])


def elasticrun() -> None:
    _become("elasticrun")


def elastic_rendezvous() -> None:
    _become("elastic-rendezvous")


def elastic_bench() -> None:
    _become("elastic-bench")
