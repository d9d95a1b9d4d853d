"""Signatures of linear algebra's custom calls: programs can call any target by hand.

A signature has a line for each form, such as `left=1: T[m m] T[m n] -> T[m n] i32[]`. A line begins
with parameters and their values: letters, as LAPACK has them, or 0 and 1. The rest are the types of
the operands and the results. T is the first operand's, real or complex; R and C are the real and
the complex type of its precision. Equal sizes have equal letters; k is the smaller of m and n, and
`n-1` is at least 0. All shapes have the same batch dimensions in front.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ipujax.compiler.ir import Op, Value

_COMPLEX = {"f32": "complex<f32>", "f64": "complex<f64>"}
_REAL = {whole: part for part, whole in _COMPLEX.items()}
_REALS = ("bf16", "f16", "f32", "f64")

#: By the custom call's target.
SIGNATURES: dict[str, tuple[Form, ...]] = {}


class Form(NamedTuple):
    """One line of a signature."""

    text: str
    parameters: dict[str, str]  #: the values that each may have
    operands: list[tuple[str, list[str]]]  #: of each: type and sizes
    results: list[tuple[str, list[str]]]

    def fits(self, op: Op, config: Mapping[str, Any]) -> bool:
        """Whether a call has this form."""
        if any(_shown(config.get(name)) not in each for name, each in self.parameters.items()):
            return False
        wanted, values = [*self.operands, *self.results], [*op.operands, *op.results]
        if len(self.operands) != len(op.operands) or len(wanted) != len(values):
            return False
        batch = _batch(op.operands[0], len(self.operands[0][1]))
        sizes: dict[str, int] = {}
        return batch is not None and all(
            _type_fits(dtype, value, op.operands[0]) and _shape_fits(names, value, batch, sizes)
            for (dtype, names), value in zip(wanted, values, strict=True)
        )


def parsed(text: str) -> tuple[Form, ...]:
    """Parses each line of a text as a form."""
    forms = []
    for line in filter(None, map(str.strip, text.splitlines())):
        before, _, types = line.rpartition(": ")
        operands, results = (
            [(dtype, sizes.split()) for dtype, sizes in re.findall(r"(\w+)\[(.*?)\]", side)]
            for side in types.split(" -> ")
        )
        parameters = dict(each.split("=") for each in before.split())
        forms.append(Form(line, parameters, operands, results))
    return tuple(forms)


def signature_refusal(op: Op) -> str | None:
    """Why the rule of this custom call cannot read it, or None if it can."""
    target = op.attrs["call_target_name"]
    config = op.attrs.get("mhlo.backend_config") or {}
    forms = SIGNATURES.get(target, ())
    if not forms or any(form.fits(op, config) for form in forms):
        return None
    parameters = ", ".join(f"{name}={_shown(value)}" for name, value in config.items())
    lines = " or ".join(f"({form.text})" for form in forms)
    return (
        f"it needs {lines} with any batch dimensions in front of each shape; got "
        f"{_listed(op.operands)} -> {_listed(op.results)} with parameters ({parameters}); use the "
        "function of jax.numpy.linalg, jax.scipy.linalg or jax.lax.linalg that makes this call"
    )


def _listed(values: Sequence[Value]) -> str:
    return f"({', '.join(f'{value.dtype}{list(value.shape)}' for value in values)})"


def _shown(value: Any) -> str:
    """A parameter's value: a letter for its code, or a number."""
    if not isinstance(value, int | np.integer | np.bool_):
        return "?"
    number = int(value)
    return chr(number) if 32 < number < 127 else str(number)


def _batch(value: Value, rank: int) -> tuple[int, ...] | None:
    count = len(value.shape) - rank
    return value.shape[:count] if count >= 0 else None


def _type_fits(wanted: str, value: Value, first: Value) -> bool:
    real = _REAL.get(first.dtype, first.dtype)
    if wanted == "i32":
        return value.dtype == "i32"
    types = {"T": first.dtype, "R": real, "C": _COMPLEX.get(real)}
    return real in _REALS and value.dtype == types[wanted]


def _shape_fits(
    names: list[str], value: Value, batch: tuple[int, ...], sizes: dict[str, int]
) -> bool:
    """Whether a shape has the sizes of its letters; new letters get sizes from the shape."""
    if value.shape[: len(batch)] != batch or len(value.shape) != len(batch) + len(names):
        return False
    for name, size in zip(names, value.shape[len(batch) :], strict=True):
        if name == "k":
            wanted = min(sizes["m"], sizes["n"])
        elif name == "n-1":
            wanted = max(sizes["n"] - 1, 0)
        else:
            wanted = sizes.setdefault(name, size)
        if size != wanted:
            return False
    return True
