"""horovodrun: elasticrun, with Horovod's options."""

from __future__ import annotations

import difflib
import os
import pathlib
import socket
import sys
from collections.abc import Sequence

import elastic
import horovod
from horovod.runner.options import BY_FLAG

USAGE = """usage: horovodrun -np N [options] program [arguments]

Starts the workers of a job by elasticrun. docs/horovod.md has the table of options. Start the script
with elasticrun to give it options of its own ('elasticrun --help'); 'elasticrun ctl' looks at a
running job and changes it.
"""


class UsageError(ValueError):
    """The command line is wrong; the message says what to give instead."""


class Command:
    """What a command line of horovodrun becomes."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.options: list[str] = []
        self.variables: dict[str, str] = {}
        self.without_effect: list[str] = []
        left = list(arguments)
        while left and left[0].startswith("-"):
            flag, has_value, value = left.pop(0).partition("=")
            if flag == "--":
                break
            option = BY_FLAG.get(flag)
            if option is None:
                raise UsageError(_unknown(flag))
            if option.takes and not has_value:
                if not left:
                    raise UsageError(f"{flag} wants a value")
                value = left.pop(0)
            self._take(flag, value)
        self.program = left
        if not self.program:
            raise UsageError("there is no program; give -np N and then the program")
        if "-np" not in self.options:
            raise UsageError("give the number of workers: -np N")

    def _take(self, flag: str, value: str) -> None:
        option = BY_FLAG[flag]
        if option.refused is not None:
            raise UsageError(f"{flag} is not in elastic-horovod; instead, {option.refused}")
        try:
            converted = option.convert(value)
        except ValueError as error:
            raise UsageError(f"{flag} is '{value}'; it must be {error}") from None
        if option.elasticrun is not None:
            if option.elasticrun in self.options[::2]:
                raise UsageError(f"{flag} is given twice")
            self.options += [option.elasticrun, converted]
        elif option.variable is not None:
            self.variables[option.variable] = converted if option.takes else "1"
        elif "--hosts" in option.flags:
            _check_hosts(value)
        else:
            self.without_effect.append(flag)

    def arguments(self) -> list[str]:
        """elasticrun's."""
        return [*self.options, *self.program]


def _check_hosts(hosts: str) -> None:
    here = {"localhost", "127.0.0.1", socket.gethostname()}
    for host in hosts.split(","):
        name, has_slots, slots = host.partition(":")
        if not name or (has_slots and not slots.isdecimal()):
            raise UsageError(f"--hosts is '{hosts}'; it must be such as localhost:4")
        if name not in here:
            refused = BY_FLAG["--hostfile"].refused
            raise UsageError(f"--hosts: {host} is another machine; instead, {refused}")


def _unknown(flag: str) -> str:
    near = difflib.get_close_matches(flag, BY_FLAG, 1)
    meant = f"did you mean {near[0]}? If" if near else "if"
    return f"there is no option {flag}; {meant} elasticrun has it, start the script with elasticrun"


def elasticrun() -> pathlib.Path:
    """The program in elastic's wheel."""
    return pathlib.Path(elastic.__file__).parent / "bin" / "elasticrun"


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return
    if arguments[0] in ("-v", "--version"):
        print(horovod.__version__)
        return
    if arguments[0] in ("-cb", "--check-build"):
        os.execv(elasticrun(), ["elasticrun", "--check-build"])
    try:
        command = Command(arguments)
    except UsageError as error:
        print(f"horovodrun: {error}", file=sys.stderr)
        sys.exit(2)
    if command.without_effect:
        print(
            f"horovodrun: without effect here: {', '.join(command.without_effect)}",
            file=sys.stderr,
            flush=True,
        )
    os.environ.update(command.variables)
    os.execv(elasticrun(), ["elasticrun", *command.arguments()])


if __name__ == "__main__":
    main()
