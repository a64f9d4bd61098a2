"""The installed package: its programs, and what is said where it cannot be loaded."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import pytest

import elastic

PACKAGE = pathlib.Path(elastic.__file__).parent


@pytest.mark.parametrize("name", ["elasticrun", "elastic-rendezvous", "elastic-bench"])
def test_programs_are_installed(name: str) -> None:
    program = pathlib.Path(sys.executable).with_name(name)
    shown = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0 and "--" in shown.stdout, shown


def message_of(folder: pathlib.Path) -> str:
    """What the import of the package in ``folder`` says."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import elastic"
    failed = subprocess.run(
        [sys.executable, "-c", program, folder], capture_output=True, text=True, timeout=60
    )
    assert failed.returncode == 1, failed
    return failed.stderr.splitlines()[-1]


@pytest.fixture
def copy(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the package without its compiled module."""
    shutil.copytree(PACKAGE, tmp_path / "elastic", ignore=shutil.ignore_patterns("*.so*", "bin"))
    return tmp_path


def test_the_folder_of_the_sources_says_what_it_is(copy: pathlib.Path) -> None:
    text = message_of(copy)
    assert text.startswith("ImportError: elastic cannot be loaded: ") and "run from another" in text


def test_a_module_for_another_machine_says_so(copy: pathlib.Path) -> None:
    (module,) = PACKAGE.glob("_core*.so")
    (copy / "elastic" / module.name).write_bytes(module.read_bytes()[:200])
    text = message_of(copy)
    assert f"not for Python {sys.version_info.major}." in text and "install the wheel" in text


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_newer_libc_is_named(copy: pathlib.Path) -> None:
    """The module asks for a version of libc that no libc has."""
    (module,) = PACKAGE.glob("_core*.so")
    (copy / "newer.map").write_text("GLIBC_2.99 { wanted; };\n")
    (copy / "newer.c").write_text("int wanted(void) { return 0; }\n")
    (copy / "module.c").write_text(
        "int wanted(void);\nvoid* PyInit__core(void) { return wanted() ? \"\" : 0; }\n"
    )
    shared = ["cc", "-shared", "-fPIC", "-nostdlib"]
    script = ["-Wl,-soname,libc.so.6", "-Wl,--version-script=newer.map"]
    for command in (
        [*shared, *script, "newer.c", "-o", "libnewer.so"],
        [*shared, "module.c", "-L.", "-lnewer", "-o", f"elastic/{module.name}"],
    ):
        subprocess.run(command, cwd=copy, check=True, timeout=60)
    text = message_of(copy)
    assert "compiled for a newer system, which has GLIBC_2.99" in text, text
