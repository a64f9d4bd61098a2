"""The reason why the extension module cannot be loaded."""

from __future__ import annotations

import importlib
import pathlib
import platform
import re
import sys


def refuse_other_interpreters() -> None:
    """Only the main interpreter can load the module: in another one it would disturb that one's."""
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    try:
        interpreters = importlib.import_module(name)
    except ImportError:
        return  # this Python makes no others
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError(
            "elastic cannot be loaded in a subinterpreter; import it in the main interpreter of a "
            "process",
            name="elastic",
        )


def explained(error: ImportError) -> ImportError:
    """The same error, with what to do about it."""
    return ImportError(f"elastic cannot be loaded: {_reason(error)}", name=error.name, path=error.path)


def _reason(error: ImportError) -> str:
    folder = pathlib.Path(__file__).parent
    here = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if not list(folder.glob("_core*.so")):
        return (
            f"{folder} has no compiled module; it is the folder of the sources, which Python found "
            "before the installed package: run from another folder, or install with "
            "'pip install ./bindings/python'"
        )
    text = str(error)
    version = re.search(r"version `((?:GLIBC|GLIBCXX|CXXABI)_[0-9.]+)' not found", text)
    if version:
        own = " ".join(platform.libc_ver()) or "another libc"
        return (
            f"it was compiled for a newer system, which has {version.group(1)}, and this one has "
            f"{own}; compile it here: 'pip install ./bindings/python' from a checkout ({text})"
        )
    if error.name == "nanobind_backend" or "nanobind" in text:
        return (
            f"the package nanobind-backend is missing or is of another version; install it with "
            f"'{sys.executable} -m pip install --upgrade nanobind-backend' ({text})"
        )
    return f"its module is not for {here}; install the wheel for this system ({text})"
