"""Reads programs that `jax.export` serialised, from files that may be damaged."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import jax.export

from ipujax import jax_compat
from ipujax.errors import ConvertError
from ipujax.host.file_reading import content_of
from ipujax.host.limited_reading import limited_reading

NEEDS = "a program that jax.export serialised"


def read_program(path: str | Path, where: str = "convert") -> jax.export.Exported:
    """The program in a file; `where` names the caller in errors.

    Some damaged bytecode makes jaxlib end the process, or read for ever, so a child process reads
    the file first.

    Raises:
        ConvertError: it is not such a program.
    """
    path = Path(path)
    try:
        content = content_of(path)
    except OSError as error:
        raise _refused(where, path, error.strerror or str(error)) from None
    command = [sys.executable, "-m", __name__, str(path)]
    child = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if child.returncode == -signal.SIGVTALRM:
        raise _refused(where, path, "bytes that jaxlib does not finish reading")
    if child.returncode:
        said = child.stdout.decode(errors="replace").strip()
        raise _refused(where, path, said or f"bytes on which jaxlib fails ({child.returncode})")
    return _read(content)


def _read(content: bytes) -> jax.export.Exported:
    exported = jax.export.deserialize(bytearray(content))
    jax_compat.deserialize_artifact(exported.mlir_module_serialized)
    return exported


def _refused(where: str, path: Path, got: str) -> ConvertError:
    return ConvertError(
        f"[{where}] needs {NEEDS}; got {got}: {str(path)!r}. Write the file again with "
        "jax.export.export(jax.jit(f))(*args).serialize()."
    )


def _main(path: str) -> int:
    try:
        content = content_of(path)
        with limited_reading(content):
            _read(content)
    except Exception as error:  # flatbuffers and MLIR fail in many ways on other bytes
        print(f"other bytes ({type(error).__name__})")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
