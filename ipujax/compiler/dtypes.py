"""The element types of programs: StableHLO's names, JAX's names, and how a tile holds them.

Tiles have no bfloat16: it is computed as float32, rounded to bfloat16 after each op, and
stored as its 16 bits (UNSIGNED_SHORT) where a program receives or returns it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ipujax.types import BY_STABLEHLO


@dataclass(frozen=True, slots=True)
class Dtype:
    """One element type that can be compiled."""

    name: str  #: StableHLO's: "f32"
    jax_name: str  #: JAX's: "float32"
    numpy: np.dtype
    poplar: str  #: name of Poplar's type while computing
    stored: str  #: name of Poplar's type at the program's boundary
    size: int  #: bytes at the program's boundary
    kind: str  #: "f" float, "i" signed, "u" unsigned, "b" bool
    wide: bool = False  #: not an IPU type: legal only where `ipu_x64` allows it

    @property
    def held_numpy(self) -> np.dtype:
        """The numpy type of a constant as a tile holds it."""
        return np.dtype(np.float32) if self.name == "bf16" else self.numpy


def _row(name: str, poplar: str, kind: str, stored: str = "") -> Dtype:
    dtype = BY_STABLEHLO[name].numpy
    size = dtype.itemsize
    return Dtype(name, dtype.name, dtype, poplar, stored or poplar, size, kind, size > 4)


DTYPES: dict[str, Dtype] = {
    row.name: row
    for row in (
        _row("f32", "FLOAT", "f"),
        _row("f16", "HALF", "f"),
        _row("bf16", "FLOAT", "f", stored="UNSIGNED_SHORT"),
        _row("i8", "CHAR", "i"),
        _row("i16", "SHORT", "i"),
        _row("i32", "INT", "i"),
        _row("ui8", "UNSIGNED_CHAR", "u"),
        _row("ui16", "UNSIGNED_SHORT", "u"),
        _row("ui32", "UNSIGNED_INT", "u"),
        _row("i1", "BOOL", "b"),
        _row("f64", "DOUBLE", "f"),
        _row("i64", "LONGLONG", "i"),
        _row("ui64", "UNSIGNED_LONGLONG", "u"),
    )
}

#: Float types in which an IPU computes and raises floating-point exceptions.
FLOATS = frozenset({"f16", "bf16", "f32"})

TOKEN = "token"

_X64 = 'set the option ipu_x64 to "demote" (computes in 32 bits) or "emulate" (exact, slow)'

#: Why a type that programs may name cannot be compiled.
REFUSED = {
    "f64": f"an IPU has no 64-bit floating point; use float32, or {_X64}",
    "i64": f"an IPU has no 64-bit integers; use int32, or {_X64}",
    "ui64": f"an IPU has no 64-bit integers; use uint32, or {_X64}",
    "complex<f64>": f"an IPU has no 64-bit floating point (f64); use complex64, or {_X64}",
}


def numpy_type(name: str) -> np.dtype | None:
    """The numpy type for this StableHLO name, or None if there is none."""
    found = BY_STABLEHLO.get(name)
    return found.numpy if found is not None else None


def refusal_of(name: str) -> str:
    """Why the type with this StableHLO name is refused."""
    return REFUSED.get(name, "it has no rules; convert it to an 8-bit or wider type on the host")
