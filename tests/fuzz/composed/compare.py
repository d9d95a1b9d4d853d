"""One composition on IPUs against the plain function on JAX's CPU backend."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from ipujax.errors import IpuError
from tests.fuzz.composed.draw import Function, direction
from tests.fuzz.composed.spec import Spec

#: True refusals, in the words of their errors: what does not compose, and with what.
REFUSALS = (r"\[ipu\.stage\] needs phases whose values stay on the IPU inside of a pipeline",)
#: What results may differ by, by the largest that there is; each derivative may lose some more.
FLOAT, HALF = 2e-5, 0.02


@dataclass
class Outcome:
    """The outcome of one composition.

    Attributes:
        differences: one line for each result that is wrong.
        refused: why ipujax refuses it, or JAX its oracle.
    """

    differences: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def compared(spec: Spec, platform: str = "ipu") -> Outcome:
    try:
        wanted = run(spec, "cpu", is_ours=False)
    except Exception as error:
        return Outcome(refused={"oracle": f"{type(error).__name__}: {error}"})
    try:
        got = run(spec, platform, is_ours=True)
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:900]}"
        if isinstance(error, IpuError) and any(re.search(each, text) for each in REFUSALS):
            return Outcome(refused={"composition": text})
        if not isinstance(error, IpuError) and _is_alike(error, _refusal(spec)):
            return Outcome(refused={"oracle": f"JAX refuses its own transforms there: {text}"})
        return Outcome([text])
    found = _differences(spec, got, wanted)
    if found and spec.is_jitted:
        # JAX's CPU backend miscompiles some programs, but no single operations.
        by_steps = run(replace(spec, is_jitted=False), "cpu", is_ours=False)
        if not _differences(spec, got, by_steps):
            return Outcome(refused={"oracle": f"it is wrong alone: {found[0]}"})
    return Outcome(found)


def _refusal(spec: Spec) -> Exception | None:
    """What JAX raises where its own transforms stand in place of those of ipujax."""
    try:
        run(spec, "cpu", is_ours=False, is_like_ours=True)
    except Exception as error:
        return error
    return None


def _is_alike(error: Exception, other: Exception | None) -> bool:
    """Whether one check raised both: names and platforms of meshes in its words may differ."""
    words = str(error).split()[:4]
    return bool(words) and type(other) is type(error) and str(other).split()[:4] == words


def _differences(
    spec: Spec, got: dict[str, np.ndarray], wanted: dict[str, np.ndarray]
) -> list[str]:
    factor = (HALF if spec.is_half else FLOAT) * 4**spec.num_derivatives
    return [text for name in wanted for text in _unequal(name, got, wanted, factor)]


def run(
    spec: Spec, platform: str, *, is_ours: bool, is_like_ours: bool = False
) -> dict[str, np.ndarray]:
    """The value and its gradients, by name."""
    with jax.default_device(jax.devices(platform)[0]):
        made_of = spec.function(platform, is_ours=is_ours, is_like_ours=is_like_ours)
        function = _value_and_gradients(made_of)
        made = (jax.jit(function) if spec.is_jitted else function)(*spec.arguments())
        shapes = jax.eval_shape(function, *spec.arguments())
        paths = jax.tree_util.tree_flatten_with_path(made)[0]
        found = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in paths}
    declared = [(x.shape, x.dtype) for x in jax.tree.leaves(shapes)]
    assert declared == [(x.shape, x.dtype) for x in found.values()], "eval_shape says others"
    return found


def _value_and_gradients(function: Function) -> Function:
    def both(weights: Any, x: Any) -> Any:
        y, pull = jax.vjp(function, weights, x)
        return {"value": y, "gradients": pull(direction())}

    return both


def _unequal(
    name: str, got: dict[str, np.ndarray], wanted: dict[str, np.ndarray], factor: float
) -> list[str]:
    ours, theirs = got.get(name), wanted[name]
    if ours is None or ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        kind = None if ours is None else f"{ours.dtype}{list(ours.shape)}"
        return [f"{name}: {kind} instead of {theirs.dtype}{list(theirs.shape)}"]
    allowed = factor * (1 + np.max(np.abs(theirs), initial=0))
    error = np.max(np.abs(ours - theirs), initial=0)
    if error <= allowed:
        return []
    return [
        f"{name}: differs by {error:.3g} of {allowed:.3g}: {ours.ravel()[:4]}, {theirs.ravel()[:4]}"
    ]
