"""Functions of JAX's namespaces, and forms of arguments that they take.

Nothing lists the functions: a namespace is asked for its names, and a function for which forms it
can be traced.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import random
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Function = Callable[..., Any]

#: Of scipy, each module with all below it.
MODULES = ("jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.nn", "jax.lax", "jax.lax.linalg")
#: What a comparison of two backends cannot be of.
LEFT_OUT = {
    "empty": "its elements may be anything",
    "rng": "random numbers",
    "random": "random numbers",
    "set": "changes settings of NumPy",
    "printoptions": "changes settings of NumPy",
    "eig": "vectors have any sign, or are any basis of a space",
    "eigh": "vectors have any sign, or are any basis of a space",
    "svd": "vectors have any sign, or are any basis of a space",
    "schur": "vectors have any sign, or are any basis of a space",
    "tridiagonal": "vectors have any sign",
    "hessenberg": "vectors have any sign",
    "polar": "an iteration that ends by rounding",
    "qdwh": "an iteration that ends by rounding",
    "sqrtm": "complex Schur vectors",
    "approx": "any of the largest",
    "roots": "in any order",
}

#: A letter is an argument: v [6], m [3, 4], t [2, 3, 4], s [4, 4], p positive definite [4, 4],
#: f [], of floats; i [6], j [3, 4] integers; b [3, 4] booleans; digits are Python's integers;
#: (..) is a list.
FORMS = (
    *(
        "m",
        "v",
        "s",
        "t",
        "f",
        "p",
        "mm",
        "vv",
        "ss",
        "tt",
        "ff",
        "sv",
        "pv",
        "ps",
        "mv",
        "mf",
        "fm",
    ),
    *(
        "mmm",
        "vvv",
        "fff",
        "m0",
        "m1",
        "m2",
        "v2",
        "v3",
        "t1",
        "t2",
        "s2",
        "s3",
        "m01",
        "m12",
        "t02",
    ),
    *(
        "bmm",
        "bm",
        "bmf",
        "mb",
        "vi",
        "mi",
        "tj",
        "iv",
        "jm",
        "i",
        "j",
        "ii",
        "jj",
        "i3",
        "j1",
        "i6",
    ),
    *(
        "(mm)",
        "(vv)",
        "(mm)1",
        "(ss)",
        "(mmm)0",
        "v(vv)",
        "2",
        "3",
        "34",
        "ff5",
        "mmmm",
        "mm1",
        "v2v",
    ),
    *(
        "vvi",
        "vv1",
        "mff",
        "mmf",
        "ttm",
        "t(12)",
        "m(10)",
        "t(021)",
        "m(43)",
        "m(26)",
        "(23)",
        "t0(12)",
    ),
)


class Call(NamedTuple):
    """One call: `function` of the arrays alone."""

    text: str
    function: Function
    arrays: tuple[np.ndarray, ...]


@functools.cache
def functions() -> dict[str, Function]:
    """ "jax.numpy.sin" -> the function."""
    names = [*MODULES, *_below("jax.scipy")]
    found: dict[str, Function] = {}
    seen = set()
    for module_name in names:
        module = importlib.import_module(module_name)
        for name in sorted(vars(module)):
            value = getattr(module, name)
            if name.startswith("_") or not callable(value) or inspect.isclass(value):
                continue
            if isinstance(value, type(jnp.float32)) or id(value) in seen:
                continue
            if not LEFT_OUT.keys().isdisjoint(name.split("_")):
                continue
            seen.add(id(value))
            found[f"{module_name}.{name}"] = value
    return found


def _below(name: str) -> list[str]:
    package = importlib.import_module(name)
    infos = pkgutil.walk_packages(package.__path__, name + ".")
    return [info.name for info in infos if "._" not in info.name]


def from_seed(seed: int) -> Call | None:
    """Equal seeds make equal calls; functions take turns; None for one that no form fits."""
    names = sorted(functions())
    name = names[seed % len(names)]
    rng = random.Random(f"function {name} {seed // len(names)}")
    draw = rng.choice((normal, unit, positive))
    for form in rng.sample(FORMS, len(FORMS)):
        if fits(name, form):
            return call(name, form, draw, rng.getrandbits(32))
    return None


def call(name: str, form: str, draw: Callable[..., Any], seed: int) -> Call:
    """A function with arguments of this form."""
    arguments = _parsed(form, draw, np.random.default_rng(seed))
    leaves, tree = jax.tree.flatten(arguments)
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)]
    function = functions()[name]

    def of_arrays(*arrays: Any) -> Any:
        full = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            full[place] = array
        return function(*jax.tree.unflatten(tree, full))

    return Call(f"{name}({form}, {draw.__name__})", of_arrays, tuple(leaves[k] for k in places))


@functools.cache
def fits(name: str, form: str) -> bool:
    """Whether the function can be traced with such arguments, to numbers."""
    made = call(name, form, unit, 0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = jax.tree.leaves(jax.eval_shape(made.function, *made.arrays))
    except Exception:  # whatever the function raises for arguments that it does not take
        return False
    kinds = [np.dtype(getattr(x, "dtype", object)) for x in results]
    return bool(kinds) and all(jnp.issubdtype(k, jnp.number) or k.kind == "b" for k in kinds)


# Arguments ---------------------------------------------------------------------------------------


def normal(numbers: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return numbers.standard_normal(shape).astype(np.float32)


def unit(numbers: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return numbers.uniform(0.05, 0.95, shape).astype(np.float32)


def positive(numbers: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return numbers.uniform(0.5, 4, shape).astype(np.float32)


SHAPES = {"v": (6,), "m": (3, 4), "t": (2, 3, 4), "s": (4, 4), "f": ()}


def _parsed(form: str, draw: Callable[..., Any], numbers: np.random.Generator) -> list[Any]:
    stack: list[list[Any]] = [[]]
    for letter in form:
        if letter == "(":
            stack.append([])
        elif letter == ")":
            inner = stack.pop()
            is_shape = all(isinstance(x, int) for x in inner)
            stack[-1].append(tuple(inner) if is_shape else inner)
        else:
            stack[-1].append(_argument(letter, draw, numbers))
    return stack[0]


def _argument(letter: str, draw: Callable[..., Any], numbers: np.random.Generator) -> Any:
    if letter.isdigit():
        return int(letter)
    if letter == "p":
        x = numbers.standard_normal((4, 4))
        return (x @ x.T + np.eye(4)).astype(np.float32)
    if letter in "ij":
        return numbers.integers(0, 3, (6,) if letter == "i" else (3, 4)).astype(np.int32)
    if letter == "b":
        return numbers.integers(0, 2, (3, 4)).astype(bool)
    return draw(numbers, SHAPES[letter])
