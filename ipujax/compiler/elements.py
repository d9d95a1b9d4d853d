"""Reads elements of constants: from a buffer where MLIR's bindings have one, else from text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ipujax.compiler.dtypes import numpy_type


def first(array: np.ndarray) -> np.ndarray:
    """The first element, of shape [1]; [0] if there is none. `array.flat` allows 32 dimensions."""
    whole = np.atleast_1d(array)
    return whole[(slice(0, 1),) * whole.ndim].reshape(-1)


def elements(attribute: Any) -> np.ndarray:
    """The elements of a dense attribute; a splat has stride 0 in every dimension."""
    kind = attribute.type
    shape = tuple(kind.shape)
    if 0 in shape:  # NumPy would see an empty list
        return np.zeros(shape, numpy_type(str(kind.element_type)) or np.uint8)
    try:
        array = np.asarray(attribute)
    except TypeError:
        array = _from_text(str(attribute), str(kind.element_type), shape)
    if array.size and not any(array.strides):
        return np.broadcast_to(first(array).reshape(()).copy(), array.shape)
    # The buffer belongs to the MLIR context, which dies before the program does.
    return np.array(array)


def complex_elements(operation: Any, element: str, shape: tuple[int, ...]) -> np.ndarray:
    """The elements of a complex constant op, whose attribute the bindings cannot read."""
    return _from_text(str(operation), element, shape)


def _from_text(text: str, element: str, shape: tuple[int, ...]) -> np.ndarray:
    dtype = numpy_type(element)
    if dtype is None:
        # Its type is refused later, with all other such ops.
        return np.broadcast_to(np.zeros((), np.uint8), shape)
    begin = text.index("dense<") + 6
    body = text[begin : text.rindex("> : tensor<")]
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), dtype).reshape(shape)
    part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    tokens = re.findall(r"[-+.\w]+", body)
    numbers = np.array([_number(token, part) for token in tokens], part).view(dtype)
    if numbers.size == 1:
        return np.broadcast_to(numbers.reshape(()), shape)
    return numbers.reshape(shape)


def _number(token: str, dtype: np.dtype) -> Any:
    """One number as MLIR prints it; hexadecimal digits are the bits of a float."""
    if token.startswith("0x"):
        return np.array(int(token, 16), f"u{dtype.itemsize}").view(dtype)
    if re.fullmatch(r"[-+]?\d+", token):
        return np.array(int(token)).astype(dtype)
    return np.array(float(token)).astype(dtype)
