"""Arrays from strings such as "ones((2, 3))": a small part of NumPy, parsed and never executed."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ipujax.errors import ConfigError

MOST_ELEMENTS = 2**31
_GENERATOR = np.random.default_rng(0)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arange": np.arange,
    "array": np.array,
    "eye": np.eye,
    "full": np.full,
    "linspace": np.linspace,
    "ones": np.ones,
    "zeros": np.zeros,
    "random.integers": _GENERATOR.integers,
    "random.normal": _GENERATOR.normal,
    "random.uniform": _GENERATOR.uniform,
}
_METHODS = frozenset({"astype", "reshape", "transpose"})
_DTYPES = frozenset(
    {"bool_", "float16", "float32", "float64", "int8", "int16", "int32", "int64"}
    | {"uint8", "uint16", "uint32", "uint64"}
)
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}
NEEDS = (
    f"an expression of literals, + - * /, the functions {', '.join(sorted(_FUNCTIONS))}, the "
    f"methods {', '.join(sorted(_METHODS))} and the names of dtypes"
)


def evaluate(text: str) -> np.ndarray:
    """The array that the text describes; names may have the prefix `np.`. Random arrays are the
    same in every process.

    Raises:
        ConfigError: the text has anything but what `NEEDS` lists, or NumPy refuses it.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return np.asarray(_value(tree.body))
    except ConfigError:
        raise
    except (SyntaxError, ValueError, TypeError, ArithmeticError, MemoryError) as error:
        raise _refused(f"{text!r}: {error}") from None
    except RecursionError:
        raise _refused("one that is nested too deeply") from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str()):
            return node.value
        case ast.Tuple() | ast.List():
            return [_value(item) for item in node.elts]
        case ast.UnaryOp(op=ast.USub()):
            return -np.asarray(_value(node.operand))
        case ast.BinOp() if type(node.op) in _OPERATORS:
            found = np.asarray(_value(node.left)), np.asarray(_value(node.right))
            _check_size(np.broadcast_shapes(*(x.shape for x in found)))
            return _OPERATORS[type(node.op)](*found)
        case ast.Name() | ast.Attribute():
            name = _name(node)
            if name in _DTYPES:
                return np.dtype(name.rstrip("_"))
            raise _refused(repr(name))
        case ast.Call():
            return _call(node)
    raise _refused(ast.unparse(node)[:60])


def _call(node: ast.Call) -> Any:
    args = [_value(argument) for argument in node.args]
    named = {str(k.arg): _value(k.value) for k in node.keywords}
    name = _name(node.func)
    if name in _FUNCTIONS:
        _check_call(name, args, named)
        return _FUNCTIONS[name](*args, **named)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        array = np.asarray(_value(node.func.value))
        return getattr(array, node.func.attr)(*args, **named)
    raise _refused(ast.unparse(node)[:60])


def _name(node: ast.expr) -> str:
    """The dotted name without "np." or "numpy."; empty if it is not a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    names = parts[::-1]
    return ".".join(names[1:] if names[0] in ("np", "numpy") else names)


def _check_call(name: str, args: list[Any], named: dict[str, Any]) -> None:
    """Refuses arrays that do not fit in memory, before NumPy makes them."""
    if name == "array":
        return
    if name == "arange":
        bounds = [*args, *(named.get(key, 0) for key in ("start", "stop"))]
        steps = named.get("step", args[2] if len(args) > 2 else 1)
        _check_size((int(max(map(abs, bounds)) * 2 / (abs(steps) or 1)),))
        return
    for value in (*args, *named.values()):
        if isinstance(value, (int, list)):
            sizes = [size for size in np.ravel(value) if isinstance(size, (int, np.integer))]
            _check_size(sizes if name != "eye" else [*sizes, *sizes])


def _check_size(shape: Any) -> None:
    if math.prod(int(size) for size in shape) > MOST_ELEMENTS:
        raise _refused(f"an array of shape {tuple(int(s) for s in shape)}")


def _refused(got: str) -> ConfigError:
    return ConfigError(f"[run] needs {NEEDS}; got {got}. Write an array into a .npy file instead.")
