"""scikit-build-core, and a source distribution that has the C++ library in it.

The library's sources are outside this folder, where no source distribution can reach. They are
copied into `elastic-source` for as long as it takes to pack one.
"""

import pathlib
import shutil

from scikit_build_core.build import *  # noqa: F403
from scikit_build_core import build as _build

_HERE = pathlib.Path(__file__).resolve().parent
_CHECKOUT = _HERE.parent.parent
_COPY = _HERE / "elastic-source"
_SOURCES = ("CMakeLists.txt", "base", "benchmarks", "bindings/CMakeLists.txt", "bindings/c", "cmake",
            "collectives", "include", "rendezvous", "src")  # fmt: skip


def build_sdist(sdist_directory, config_settings=None):
    """Packs the C++ library's sources with the package's."""
    if (_COPY / "CMakeLists.txt").exists():  # this is a source distribution itself
        return _build.build_sdist(sdist_directory, config_settings)
    try:
        for name in _SOURCES:
            source = _CHECKOUT / name
            if source.is_dir():
                shutil.copytree(source, _COPY / name)
            else:
                (_COPY / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, _COPY / name)
        return _build.build_sdist(sdist_directory, config_settings)
    finally:
        shutil.rmtree(_COPY, ignore_errors=True)
