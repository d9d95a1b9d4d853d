"""Runs a case on IPUs and its reference on the CPU in float64, and says where they differ."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.fuzz.library import generators
from tests.fuzz.library.case import Case, Draw
from tests.fuzz.library.modes import Program, pick

#: Of the largest element of a result, for each dtype that may have been rounded to on the way.
ALLOWED = {"float32": 2e-6, "float16": 2.0**-9, "bfloat16": 2.0**-6}
#: By how much more, where the plain definition on the CPU, in the same dtypes, is as far away.
LENIENT = {"float32": 30.0, "float16": 6.0, "bfloat16": 4.0}
#: Sums of large terms may be small: of the largest element of all operands and results.
LEAST = 0.02
#: Each derivative adds rounded sums of rounded terms.
BY_DEPTH = (1.0, 3.0, 8.0)


@dataclass(frozen=True)
class Run:
    """A seed's call and mode."""

    name: str
    mode: str
    case: Case
    program: Program

    def __str__(self) -> str:
        shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.program.operands)
        return f"{self.name}({shapes}; {self.case.text}) by {self.mode}"


def from_seed(seed: int) -> Run:
    """Equal seeds make equal runs; the functions take turns."""
    names = sorted(generators.GENERATORS)
    name = names[seed % len(names)]
    d = Draw(f"library {name} {seed // len(names)}")
    case = generators.GENERATORS[name](d)
    mode = pick(d, case)
    return Run(name, mode.__name__, case, mode(d, case))


def compared(run: Run) -> list[str]:
    """One line for each result that is not the reference's."""
    try:
        ours = on_ipus(run)
    except Exception as error:
        return [f"{run}: {type(error).__name__}: {str(error)[:500]}"]
    theirs = by_reference(run)
    found = differing(run, ours, theirs, None)
    if found:
        found = differing(run, ours, theirs, on_cpu(run))
    return [f"{run}: {text}" for text in found]


def on_ipus(run: Run) -> list[Any]:
    program = run.program
    function = program.fast(run.case.function)
    function = jax.jit(function) if program.traced else function
    places = program.shardings or [jax.devices("ipu")[0]] * len(program.operands)
    with jax.default_device(jax.devices("ipu")[0]):
        if run.mode == "pmap":
            return _leaves(function(*program.operands))
        pairs = zip(program.operands, places, strict=True)
        return _leaves(function(*(jax.device_put(x, place) for x, place in pairs)))


def by_reference(run: Run) -> list[Any]:
    """In float64 of the same operands, which are rounded to their dtypes already."""
    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(True):
        function = run.program.plain(run.case.reference)
        function = jax.jit(function) if run.case.compiled else function
        return _leaves(function(*map(_wide, run.program.operands)))


def on_cpu(run: Run) -> list[Any] | None:
    """The function in its own dtypes on the CPU; None where it cannot run there."""
    with jax.default_device(jax.devices("cpu")[0]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _leaves(jax.jit(run.program.plain(run.case.function))(*run.program.operands))
        except Exception:
            return None


def _wide(x: Any) -> Any:
    is_float = jnp.issubdtype(x.dtype, jnp.floating)
    return jnp.asarray(x.astype(np.float64)) if is_float else x


def _leaves(tree: Any) -> list[Any]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def differing(run: Run, ours: Any, theirs: Any, plain: Any) -> list[str]:
    if len(ours) != len(theirs):
        return [f"{len(ours)} results instead of {len(theirs)}"]
    operands = (*run.program.operands, *run.program.constants)
    names = {str(x.dtype) for x in (*operands, *ours)}
    narrow = next((n for n in ("bfloat16", "float16") if n in names), "float32")
    allowed = ALLOWED[narrow] * BY_DEPTH[run.program.depth] * run.case.factor
    floats = [x for x in (*operands, *theirs) if jnp.issubdtype(x.dtype, jnp.floating)]
    least = LEAST * max(map(_scale, floats), default=0.0)
    texts = []
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        limit = allowed * max(least, _scale(b))
        text = unequal(a, b, limit, None if plain is None else plain[k], LENIENT[narrow])
        if text:
            texts.append(f"result {k}: {text}")
    return texts


def _scale(x: Any) -> float:
    wide = x.astype(np.float64) if jnp.issubdtype(x.dtype, jnp.floating) else np.zeros(1)
    return float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))


def unequal(ours: Any, theirs: Any, limit: float, plain: Any, lenient: float) -> str:
    """Empty where all elements are within the error that is allowed."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} instead of {theirs.shape}"
    if not jnp.issubdtype(ours.dtype, jnp.floating):
        same = ours.astype(np.int64) == theirs.astype(np.int64)
    else:
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        most = float(jnp.finfo(ours.dtype).max)
        with np.errstate(all="ignore"):
            b = np.where(np.abs(b) > most, np.sign(b) * np.inf, b)
            if plain is not None and plain.shape == b.shape:
                off = np.abs(plain.astype(np.float64) - b)
                off = 4 * off[np.isfinite(off)].max(initial=0)
                limit = max(limit, min(off, lenient * limit))
            same = (a == b) | (np.abs(a - b) <= limit) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return (
        f"{(~same).sum()} of {same.size} elements of {ours.dtype}{list(ours.shape)} differ, at "
        f"{list(at)}: {ours[at]} instead of {theirs[at]}"
    )
