"""The same StableHLO in float64: how far from the truth may a rounded result be?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from tests.fuzz.check import on_platform
from tests.fuzz.values import dtype_of

#: MLIR's names of floats, and NumPy's.
NAMES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "complex<f32>": "complex64"}
_CONSTANT = re.compile(
    r'dense<("0x[0-9A-F]*"|[^<>"]*)> : tensor<([0-9x]*)(f32|f16|bf16|complex<f32>)>'
)
_HEX = re.compile(r"0x[0-9A-F]+")
_TYPE = re.compile(r"(?<=[x<( ])(bf16|f16|f32)(?=[>,) \n])")
#: Random numbers are made of their bits.
_OF_BITS = re.compile(
    r"(%\w+) = (stablehlo.bitcast_convert %\w+ : \(tensor<[0-9x]*ui\d+>\) -> )"
    r"(tensor<[0-9x]*)(f32|f16|bf16)>"
)


def widened(text: str) -> str:
    """A module's text with every float type made float64."""
    text = _TYPE.sub("f64", _CONSTANT.sub(_constant, _OF_BITS.sub(_of_bits, text)))
    return text.replace(_KEPT, "")


#: Stands before the names of types that stay narrow.
_KEPT = "narrow_"


def _of_bits(match: re.Match[str]) -> str:
    """The number whose bits they are in the narrow type, then in float64."""
    result, bits, shape, kind = match.groups()
    narrow, name = f"{shape}{_KEPT}{kind}>", f"%of_bits_{result[1:]}"
    made = f"{name} = {bits}{narrow}"
    return f"{made}\n{result} = stablehlo.convert {name} : ({narrow}) -> {shape}{kind}>"


def _constant(match: re.Match[str]) -> str:
    """Bit patterns of a narrow type become those of float64."""
    body, shape, kind = match.groups()
    dtype = dtype_of(NAMES[kind])
    wide = np.complex128 if dtype.kind == "c" else np.float64
    if body.startswith('"'):
        numbers = np.frombuffer(bytes.fromhex(body[3:-1]), dtype).astype(wide)
        body = f'"0x{numbers.tobytes().hex().upper()}"'
    elif dtype.kind != "c":
        body = _HEX.sub(lambda one: _pattern(one[0], dtype), body)
    return f"dense<{body}> : tensor<{shape}{kind}>"


def _pattern(text: str, dtype: np.dtype) -> str:
    bits = np.frombuffer(int(text, 16).to_bytes(dtype.itemsize, "little"), dtype)
    return f"0x{int.from_bytes(bits.astype(np.float64).tobytes(), 'little'):016X}"


def in_float64(text: str, arguments: Sequence[np.ndarray]) -> list[Any]:
    """What JAX's CPU backend computes of a module when nothing is rounded to less."""
    with jax.enable_x64(True):
        return on_platform("cpu")(widened(text), [_wide(a) for a in arguments])


def _wide(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64) if array.dtype.name in NAMES.values() else array
