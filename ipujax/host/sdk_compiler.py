"""Libraries of custom ops in a build against a Poplar SDK: compiled with that SDK's headers.

The IPU Model's own build compiles them in C++, as it compiles codelets; an SDK has no public
function for that.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipujax.errors import ConfigError

if TYPE_CHECKING:
    from ipujax._poplar._poplar.popx import CustomOpLibrary

#: Poplar's headers are C++17; sources written for Clang narrow constants.
_FLAGS = ("-std=c++17", "-w", "-Wno-narrowing", "-O2", "-shared", "-fPIC")


def include_folder() -> Path:
    """The folder of the SDK's headers."""
    from ipujax._poplar import _poplar

    popx: Any = _poplar.popx  # the stubs are those of the IPU Model's build
    return Path(popx.sdkFolder()) / "include"


def compile_library(source: str, flags: str) -> CustomOpLibrary:
    """Compiles a library with the host's compiler ($CXX, or c++), and loads it.

    Raises:
        ConfigError: the source does not compile, or there is no compiler or no temporary folder.
    """
    from ipujax._poplar import _poplar

    own = Path(_poplar.__file__).parent.parent / "include"  # popx/JsonAttributes.hpp
    folders = [f"-isystem{include_folder()}", f"-isystem{own}"]
    with _temporary_folder() as folder:
        file, library = Path(folder) / "custom_op.cpp", Path(folder) / "custom_op.so"
        file.write_text(source, encoding="utf-8")
        _run([*_FLAGS, *folders, str(file), "-o", str(library), *shlex.split(flags)])
        return _poplar.popx.CustomOpLibrary.load(str(library))


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    place = os.environ.get("TMPDIR") or "/tmp"
    try:
        return tempfile.TemporaryDirectory(prefix="ipujax-custom-op-", dir=place)
    except OSError:
        raise ConfigError(
            f"[custom_op] needs a writable temporary folder; got {place}. Set TMPDIR."
        ) from None


def _run(arguments: list[str]) -> None:
    command = shlex.split(os.environ.get("CXX", "")) or ["c++"]
    try:
        run = subprocess.run(
            [*command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise ConfigError(
            f"[custom_op] needs a C++ compiler on this host; got {error.strerror!r} for "
            f"{command[0]}. Install one, or set CXX."
        ) from None
    if run.returncode != 0:
        raise ConfigError(
            f"[custom_op] needs C++ that compiles; got errors of {command[-1]}:\n{run.stdout}"
        )
