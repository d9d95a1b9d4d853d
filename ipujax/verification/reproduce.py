"""Scripts that reproduce one mismatch, and the function that they call."""

from __future__ import annotations

import base64
import textwrap
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 (its types are NumPy dtypes by name from here on)
import numpy as np

from ipujax.errors import OracleError
from ipujax.verification.compare import difference
from ipujax.verification.locate import Finding
from ipujax.verification.oracles import ORACLES, Oracle

_FILE = '''"""{heading}

The first op that differs is {op}{where}.
Run this file: it prints the results of the program below on the IPU and on each oracle.
"""

from ipujax.verification.reproduce import show

PROGRAM = r"""
{program}"""

#: One (dtype, shape, elements) for each parameter; the elements compressed, in base64.
INPUTS = [
{inputs}]

#: As jax.jit(..., compiler_options=) had them.
OPTIONS = {options!r}

if __name__ == "__main__":
    raise SystemExit(show(PROGRAM, INPUTS, OPTIONS))
'''

Packed = tuple[str, tuple[int, ...], str]


def pack(array: Any) -> Packed:
    """An array as text."""
    array = np.asarray(array)
    data = base64.b64encode(zlib.compress(array.tobytes())).decode()
    return array.dtype.name, array.shape, data


def unpack(packed: Packed) -> np.ndarray:
    """The array from its text."""
    name, shape, data = packed
    raw = zlib.decompress(base64.b64decode(data))
    return np.frombuffer(raw, np.dtype(name)).reshape(shape).copy()


def write_reproducer(
    folder: Path, finding: Finding, heading: str, options: Mapping[str, Any]
) -> Path:
    """Writes a new script into `folder`; returns its path. `options`: of the IPU's compiler."""
    folder.mkdir(parents=True, exist_ok=True)
    name = "ipu_mismatch_" + finding.op.rpartition(".")[2]
    path = folder / f"{name}.py"
    number = 1
    while path.exists():
        number += 1
        path = folder / f"{name}_{number}.py"
    text = _FILE.format(
        heading=heading.replace("\\", "/").replace('"""', "'''"),
        op=finding.op,
        where=f" at {finding.source}" if finding.source else "",
        program=finding.piece.text,
        inputs="".join(map(_input_text, finding.inputs)),
        options=dict(options),
    )
    path.write_text(text)
    return path


def _input_text(array: Any) -> str:
    dtype, shape, data = pack(array)
    lines = "".join(f'        "{line}"\n' for line in textwrap.wrap(data, 80))
    comment = f"    # {' '.join(str(np.asarray(array).ravel()).split())[:80]}\n"
    return f"{comment}    (\n        {dtype!r},\n        {tuple(shape)},\n{lines}    ),\n"


def show(program: str, inputs: Sequence[Packed], options: Mapping[str, Any]) -> int:
    """Runs the program on the IPU and on every oracle, each in its own process.

    Args:
        options: of the IPU's compiler.
    Returns:
        0 if any oracle agrees with the IPU, else 1.
    """
    arrays = [unpack(packed) for packed in inputs]
    results: dict[str, list[Any]] = {}
    for name in ("ipu", *ORACLES):
        oracle = Oracle(name, options=options if name == "ipu" else {})
        try:
            results[name] = oracle.run(program, arrays)
            print(f"{name}:")
            for array in results[name]:
                print(textwrap.indent(f"{array.dtype}{list(array.shape)}\n{array}", "  "))
        except OracleError as error:
            print(f"{name}: {error}")
        finally:
            oracle.close()
    if "ipu" not in results:
        return 1
    agrees = False
    for name in (name for name in ORACLES if name in results):
        equal = True
        for k, (ours, theirs) in enumerate(zip(results["ipu"], results[name], strict=True)):
            found = difference(ours, theirs)
            print(f"result {k}, ipu and {name}: {found.what if found else 'equal'}")
            equal = equal and not found
        agrees = agrees or equal
    return 0 if agrees else 1
