"""Runs a call and its derivatives on IPUs and on the CPU; float64 decides where they differ."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.fuzz.functions.calls import Call, from_seed

#: Of the largest element of a result.
ALLOWED = 1e-5
#: An error of so many times that of the CPU in float32, against float64, is rounding as well.
LENIENT = 10.0

Function = Callable[..., Any]


def compared(seed: int) -> dict[str, Any]:
    """The outcome of a seed, as `chunks` wants it."""
    made = from_seed(seed)
    if made is None:
        return {"differences": [], "refused": {"forms": "none fits"}}
    rng = random.Random(seed)
    modes = rng.sample(list(MODES), len(MODES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for mode in [*modes, "value"]:
            found = differences(made, mode)
            if found is not None:
                texts = [f"{made.text} by {mode}: {text}" for text in found]
                return {"differences": texts, "refused": {}, "name": made.text, "mode": mode}
    return {"differences": [], "refused": {"cpu": made.text}}


def differences(made: Call, mode: str) -> list[str] | None:
    """One line for each result that is wrong; None where the CPU has no result in this mode."""
    function = MODES[mode](made.function, made.arrays)
    if function is None:
        return None
    try:
        theirs = on("cpu", function, made.arrays)
    except Exception:  # no derivative, or not batched
        return None
    try:
        ours = on("ipu", function, made.arrays)
    except Exception as error:
        return [f"{type(error).__name__}: {str(error)[:400]}"]
    if all(close(a, b, ALLOWED * _scale(b)) for a, b in zip(ours, theirs, strict=True)):
        return []
    return _judged(made, mode, ours, theirs)


def _judged(made: Call, mode: str, ours: list[Any], theirs: list[Any]) -> list[str]:
    """Against float64, and leniently where the CPU is wrong in float32 too."""
    with jax.enable_x64(True):
        wide = tuple(x.astype(np.float64) if x.dtype == np.float32 else x for x in made.arrays)
        try:
            truth = on("cpu", MODES[mode](made.function, wide), wide)
        except Exception:
            truth = theirs
    texts = []
    for k, (a, b, t) in enumerate(zip(ours, theirs, truth, strict=True)):
        if t.shape != b.shape or t.dtype.kind != b.dtype.kind:
            t = b
        with np.errstate(all="ignore"):
            off = np.abs(b.astype(t.dtype) - t) if t.dtype.kind in "fc" else np.zeros(1)
        limit = ALLOWED * _scale(t) + LENIENT * float(off[np.isfinite(off)].max(initial=0))
        if not close(a, t, limit) and not close(a, b, limit):
            texts.append(f"result {k}: {_text(a, t)}, and {_text(b, t)} on the CPU")
    return texts


def close(ours: Any, theirs: Any, limit: float) -> bool:
    """Whether shapes, kinds and all elements agree; NaN agrees with NaN."""
    if ours.shape != theirs.shape or ours.dtype.kind != theirs.dtype.kind:
        return False
    if ours.dtype.kind not in "fc":
        return bool((ours == theirs).all())
    with np.errstate(all="ignore"):
        same = (ours == theirs) | (np.abs(ours - theirs) <= limit)
    return bool((same | (np.isnan(ours) & np.isnan(theirs))).all())


def _text(x: Any, truth: Any) -> str:
    if x.shape != truth.shape or not x.size:
        return f"{x.dtype}{list(x.shape)}"
    with np.errstate(all="ignore"):
        off = np.nan_to_num(np.abs(x.astype(np.complex128) - truth), nan=np.inf)
    at = np.unravel_index(int(off.argmax()), x.shape)
    return f"{x[at]} instead of {truth[at]} at {list(map(int, at))}"


def _scale(x: Any) -> float:
    if x.dtype.kind not in "fc":
        return 0.0
    sizes = np.abs(x)
    return max(1.0, float(sizes[np.isfinite(sizes)].max(initial=0.0)))


def on(platform: str, function: Function, arrays: Any) -> list[Any]:
    with jax.default_device(jax.devices(platform)[0]):
        return [np.asarray(x) for x in jax.tree.leaves(jax.jit(function)(*arrays))]


# Modes: (function, arrays) -> function of the same arrays; None where it has no derivative -------


def value(function: Function, arrays: Any) -> Function:
    return function


def gradient(function: Function, arrays: Any) -> Function | None:
    """Of a weighted sum, with respect to all floats."""
    floats = _floats(arrays)
    return jax.value_and_grad(_weighted(function), floats) if floats else None


def forward(function: Function, arrays: Any) -> Function | None:
    floats = _floats(arrays)

    def tangents(*xs: Any) -> Any:
        of_floats, given = _of_floats(_weighted(function), xs, floats)
        return jax.jvp(of_floats, given, tuple(jnp.cos(x) for x in given))

    return tangents if floats else None


def hessian_product(function: Function, arrays: Any) -> Function | None:
    floats = _floats(arrays)

    def product(*xs: Any) -> Any:
        of_floats, given = _of_floats(_weighted(function), xs, floats)
        slopes = jax.grad(of_floats, tuple(range(len(given))))
        return jax.jvp(slopes, given, tuple(jnp.cos(x) for x in given))[1]

    return product if floats else None


def of_examples(function: Function, arrays: Any) -> Function | None:
    """Gradients of three examples by vmap."""
    one = gradient(function, arrays)

    def each(*xs: Any) -> Any:
        return jax.vmap(one)(*(jnp.stack([x, jnp.roll(x, 1), x]) for x in xs))

    return each if one else None


def in_scan(function: Function, arrays: Any) -> Function | None:
    """Gradients in a loop whose carry changes the first array."""
    one, floats = gradient(function, arrays), _floats(arrays)

    def loop(*xs: Any) -> Any:
        def step(x: Any, k: Any) -> Any:
            return x * (1 - 0.01 * k), one(*xs[: floats[0]], x, *xs[floats[0] + 1 :])

        return lax.scan(step, xs[floats[0]], jnp.arange(3, dtype=xs[floats[0]].dtype))[1]

    return loop if one else None


def recomputed(function: Function, arrays: Any) -> Function | None:
    return gradient(jax.checkpoint(function), arrays)


MODES: dict[str, Callable[[Function, Any], Function | None]] = {
    mode.__name__: mode
    for mode in (value, gradient, forward, hessian_product, of_examples, in_scan, recomputed)
}


def _floats(arrays: Any) -> tuple[int, ...]:
    return tuple(k for k, x in enumerate(arrays) if x.dtype.kind == "f")


def _of_floats(function: Function, xs: Any, floats: Any) -> tuple[Function, tuple[Any, ...]]:
    def of_floats(*given: Any) -> Any:
        full = list(xs)
        for place, x in zip(floats, given, strict=True):
            full[place] = x
        return function(*full)

    return of_floats, tuple(xs[k] for k in floats)


def _weighted(function: Function) -> Function:
    """A number that each float of the results changes in its own way."""

    def total(*xs: Any) -> Any:
        results = [
            x for x in jax.tree.leaves(function(*xs)) if jnp.issubdtype(x.dtype, jnp.inexact)
        ]
        if not results:
            raise TypeError("[functions] needs results that are floats; got none. Use `value`.")
        return sum(_sum(jnp.ravel(x), k) for k, x in enumerate(results))

    return total


def _sum(x: Any, k: int) -> Any:
    weights = np.cos(np.arange(x.size) + 0.3 * k)
    if jnp.iscomplexobj(x):
        return jnp.sum(x.real * weights.astype(x.real.dtype)) + jnp.sum(x.imag * weights[::-1])
    return jnp.sum(x * weights.astype(x.dtype))
