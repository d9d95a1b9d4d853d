"""Reports of files: saved reports, programs that `jax.export` serialised, and StableHLO."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.export

from ipujax import errors, jax_compat
from ipujax.api.cost.changed_programs import CompiledProgram
from ipujax.api.cost.devices import first_ipus
from ipujax.api.cost.programs import cost_of, report_of
from ipujax.api.cost.remedies import search
from ipujax.api.cost.report import SECONDS, report
from ipujax.errors import ConfigError, IpuError, ReportError
from ipujax.host.file_reading import MOST_JSON_BYTES, content_of
from ipujax.host.limited_reading import limited_reading
from ipujax.jax_compat import PLATFORM
from ipujax.reporting.document import load_report
from ipujax.reporting.model import Report

#: How MLIR bytecode begins.
_BYTECODE = b"ML\xefR"
KINDS = (
    "a report that ipu.report saved as .json, a program that jax.export serialised, or StableHLO "
    "as text or bytecode"
)


def report_of_file(path: str | Path, options: Mapping[str, Any] | None = None) -> Report:
    """The report of a file; a program is compiled for it, in a process of its own.

    Some damaged bytecode makes jaxlib end the process, or read for ever.

    Args:
        path: path of a saved report, of the bytes of `jax.export.Exported.serialize`, or of
            StableHLO.
        options: compiler options of a program, such as {"ipu_outline": "auto"}.
    Raises:
        ReportError: the file is something else, or cannot be read.
        ConfigError: there are options for a saved report, or one of them is unknown.
        IpuError: the program cannot be compiled for an IPU.
    """
    start = _content(Path(path))[:4096].lstrip()
    if not start.startswith(b"{"):
        return _in_child(Path(path), dict(options or {}))
    if options:
        raise ConfigError(
            f"[report] needs a program to compile with options; got the saved report "
            f"{str(path)!r}. Pass the program, or omit the options."
        )
    return load_report(path)


def _in_child(path: Path, options: dict[str, Any]) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "report.json")
        command = [
            sys.executable,
            "-m",
            "ipujax.api.cost.program_files",
            str(path),
            str(made),
            json.dumps(options),
        ]
        child = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if child.returncode == 0:
            return load_report(made)
    name, _, text = child.stdout.decode(errors="replace").partition("\n")
    kind = getattr(errors, name, None)
    if child.returncode != 1 or not (isinstance(kind, type) and issubclass(kind, IpuError)):
        raise ReportError(
            f"[report] needs {KINDS}; got bytecode on which jaxlib fails (exit code "
            f"{child.returncode}) for {str(path)!r}. Write the file again."
        )
    raise kind(text.strip())


def _read_and_compile(path: Path, options: Mapping[str, Any]) -> Report:
    """The work of the child process."""
    content = _content(path)
    start = content[:4096].lstrip()
    try:
        if start.startswith((_BYTECODE, b"module", b"#", b"//", b"func.func")):
            with limited_reading(content):
                code = _artifact(content)
                jax_compat.deserialize_artifact(code)
            return _report_of_artifact(code, options)
        with limited_reading(content):
            exported = _exported(content)
            jax_compat.deserialize_artifact(exported.mlir_module_serialized)
        return _report_of_exported(exported, options)
    except ReportError as error:
        raise ReportError(f"{error} It is {str(path)!r}.") from None
    except IpuError:
        raise
    except Exception as error:  # of jaxlib's and jax's many types
        text = str(error).strip().splitlines() or [type(error).__name__]
        raise ReportError(
            f"[report] needs a program for IPUs; got {text[0]} for {str(path)!r}. Export it "
            f'with platforms=["{PLATFORM}"].'
        ) from None


def _main(path: str, made: str, options: str) -> int:
    """Writes the report to a file, or an error's type and text to standard output."""
    try:
        _read_and_compile(Path(path), json.loads(options)).save(made)
    except IpuError as error:
        print(f"{type(error).__name__}\n{error}")
        return 1
    return 0


def _report_of_exported(exported: jax.export.Exported, options: Mapping[str, Any]) -> Report:
    """A program for one other platform is compiled as it is: its ops may be the same."""
    if PLATFORM in exported.platforms:
        first_ipus("report", exported.nr_devices, exported.fun_name)
        return report(exported, options=options)
    if len(exported.platforms) == 1:
        return _report_of_artifact(exported.mlir_module_serialized, options)
    raise ReportError(
        f"[report] needs a program for {PLATFORM}; got one for {', '.join(exported.platforms)}. "
        f'Export it with platforms=["{PLATFORM}"].'
    )


def _report_of_artifact(code: bytes, options: Mapping[str, Any]) -> Report:
    found = report_of(code, options)
    if found.fits:
        return found
    tried = search(CompiledProgram(code, options), cost_of(found), lambda: found, SECONDS)
    return replace(found, remedies=tried.rows)


def _content(path: Path) -> bytes:
    try:
        return content_of(path, MOST_JSON_BYTES)
    except (OSError, ValueError) as error:
        raise ReportError(
            f"[report] needs {KINDS}; got {error} for {str(path)!r}. Pass another path."
        ) from None


def _artifact(content: bytes) -> bytes:
    try:
        if _is_artifact(content):
            return content
        is_text = not content.startswith(_BYTECODE)
        return jax_compat.artifact_of(content.decode() if is_text else content)
    except Exception as error:  # MLIR's errors have no common type
        raise ReportError(
            f"[report] needs {KINDS}; got StableHLO that cannot be read: "
            f"{str(error).strip().splitlines()[-1]}. Write the file again."
        ) from None


def _is_artifact(content: bytes) -> bool:
    """Whether it is a portable artifact: bytecode that StableHLO's own version names."""
    return content.startswith(_BYTECODE) and b"StableHLO_v" in content[:64]


def _exported(content: bytes) -> jax.export.Exported:
    try:
        found = jax.export.deserialize(bytearray(content))
    except Exception as error:  # flatbuffers fails in many ways on other bytes
        raise ReportError(
            f"[report] needs {KINDS}; got other bytes ({type(error).__name__}). Save the "
            "report or export the program again."
        ) from None
    shapes = [str(aval) for aval in found.in_avals]
    if not all(isinstance(dim, int) for aval in found.in_avals for dim in aval.shape):
        raise ReportError(
            f"[report] needs fixed shapes; got {', '.join(shapes)}. Export the function for these, "
            "or call ipujax.report with the program and arguments."
        )
    return found


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
