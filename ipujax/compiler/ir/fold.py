"""Folds elementwise ops on small constants with NumPy, where it rounds as an IPU does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.elements import first
from ipujax.compiler.ir.program import Op, Value, constant, splat, splat_of
from ipujax.compiler.ir.traits import traits_of

MAX_ELEMENTS = 64

_COMPARE: dict[str, Callable[..., np.ndarray]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}

#: Ops that round at most once, by IEEE's rules, in every dtype.
_EXACT: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negate": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
}
_INTEGER: dict[str, Callable[..., np.ndarray]] = {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
}
_SHIFTS: dict[str, Callable[..., np.ndarray]] = {
    "shift_left": np.left_shift,
    "shift_right_logical": np.right_shift,
}


def identity_of(name: str, dtype: np.dtype) -> Any:
    """The neutral element of the op; None if it has none."""
    kind = traits_of(name).identity
    if not kind:
        return None
    if dtype == np.bool_:
        return kind in ("one", "ones", "highest")
    if kind in ("zero", "one"):
        return int(kind == "one")
    if kind == "ones":
        return np.asarray(-1).astype(dtype)
    limits = np.iinfo(dtype) if np.issubdtype(dtype, np.integer) else None
    if kind == "lowest":
        return limits.min if limits else -np.inf
    return limits.max if limits else np.inf


def is_identity(value: Value, name: str) -> bool:
    """Whether the value is a constant that is neutral for the op."""
    found = splat_of(value)
    identity = None if found is None else identity_of(name, found.dtype)
    return identity is not None and bool(found == identity)


def fold_elementwise(op: Op) -> list[Value] | None:
    """The result of an op on constants, or None if it is not folded."""
    for operand in op.operands:
        if operand.const is None or operand.const.size == 0:
            return None
    if not op.operands or len(op.results) != 1:
        return None
    result = op.results[0]
    if result.dtype not in DTYPES:
        return None
    arrays = [operand.const for operand in op.operands]
    all_splat = all(operand.is_splat for operand in op.operands)
    if result.num_elements == 0 or not (all_splat or result.num_elements <= MAX_ELEMENTS):
        return None
    if all_splat:
        arrays = [first(array).reshape(()) for array in arrays if array is not None]
    with np.errstate(all="ignore"):
        folded = _compute(op, arrays)  # type: ignore[arg-type]
    if folded is None:
        return None
    folded = np.asarray(folded).astype(DTYPES[result.dtype].numpy, copy=False)
    if all_splat:
        return [splat(folded, result.shape, result.dtype)]
    return [constant(np.broadcast_to(folded, result.shape), result.dtype)]


def _compute(op: Op, arrays: list[np.ndarray]) -> np.ndarray | None:
    name, dtype = op.name, op.operands[0].dtype
    kind = DTYPES[dtype].kind
    if name == "convert":
        return _convert(arrays[0], kind, op.results[0].dtype)
    if name == "compare":
        if op.attrs.get("compare_type") == "TOTALORDER":
            return None
        return _COMPARE[op.attrs["comparison_direction"]](*arrays)
    if name == "select":
        return np.where(*arrays)
    if name == "divide" and kind != "f":
        return None  # integer division by zero is left to the device
    if name == "sqrt" and kind != "f":
        return None
    if kind in "fiu" and name in _EXACT:
        return _EXACT[name](*arrays)
    if kind == "f" and name in ("maximum", "minimum") and all(a.all() for a in arrays):
        return _INTEGER[name](*arrays)  # not with zeros, whose signs would matter
    if kind in "iub" and name in _INTEGER:
        return _INTEGER[name](*arrays)
    if kind in "iu" and name in _SHIFTS:
        return _shift(name, *arrays)
    return None


def _shift(name: str, array: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Shifts in zeros; gives 0 where the (unsigned) amount is the width or more."""
    unsigned = np.dtype(f"u{array.itemsize}")
    bits, amount = array.view(unsigned), by.view(unsigned)
    width = 8 * array.itemsize
    shifted = _SHIFTS[name](bits, np.minimum(amount, width - 1))
    return np.where(amount >= width, 0, shifted).astype(unsigned).view(array.dtype)


def _convert(array: np.ndarray, kind: str, to: str) -> np.ndarray | None:
    """Leaves float to integer to the device: results out of range differ between machines."""
    if kind == "f" and DTYPES[to].kind in "iu":
        return None
    if DTYPES[to].kind == "b":
        return array != 0
    return array.astype(DTYPES[to].numpy)
