"""A child process that checks derivatives of harnesses, as `worker` checks their values.

Each harness with float32 arguments and results runs through `jax.test_util.check_grads`, forward
and reverse, to second order, on the IPU. If that also fails on JAX's CPU backend (at a kink, or
because finite differences are too inaccurate in float32), its Hessian-vector product is compared
with the CPU's instead.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.conformance.harnesses import Harness, all_harnesses
from tests.conformance.worker import REFUSAL, first_lines, run_positions

#: check_grads compares with finite differences; second derivatives of float32 lose half the digits.
TOLERANCE = 2e-2
#: Of finite differences, JAX's own first. Rounding of the values is divided by the step, so a value
#: that is right to the last bits may fail with a small one; a wrong derivative fails with each.
STEPS = (None, 1e-2)
#: For derivatives of two backends, without finite differences.
HESSIAN_TOLERANCE = 1e-3

Function = Callable[..., Any]


def main() -> None:
    """As `worker.main`."""
    os.environ["JAX_PLATFORMS"] = "ipu,cpu"
    run_positions(all_harnesses(), gradient_result)


def chosen_for_gradients(harnesses: Sequence[Harness], limit: int) -> list[int]:
    """Up to `limit` float32 harnesses of each group, spread evenly over it."""
    groups: dict[str, list[int]] = {}
    for position, harness in enumerate(harnesses):
        if harness.dtype == "float32":
            groups.setdefault(harness.group, []).append(position)
    return sorted(
        positions[k * len(positions) // min(limit, len(positions))]
        for positions in groups.values()
        for k in range(min(limit, len(positions)))
    )


def gradient_result(harness: Harness) -> dict[str, Any]:
    """Checks one harness."""
    record = {"name": harness.name, "group": harness.group, "dtype": harness.dtype}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return record | _checked(harness)


def _checked(harness: Harness) -> dict[str, Any]:
    import jax

    try:
        function, floats = _of_floats(harness)
        with jax.default_device(jax.devices("cpu")[0]):
            expected = _hessian_product(function, floats)
        if expected is None:
            return {"status": "skipped", "reason": "nothing to differentiate"}
    except Exception as error:
        return {"status": "skipped", "reason": f"cpu: {first_lines(error)}"}
    try:
        return _on_ipu(function, floats, expected)
    except Exception as error:
        status = "refused" if str(error).startswith(REFUSAL) else "error"
        return {"status": status, "reason": first_lines(error)}


def _on_ipu(function: Function, floats: list[Any], expected: list[Any]) -> dict[str, Any]:
    import jax
    from jax.test_util import check_grads

    def check(platform: str) -> str:
        """The error of check_grads; empty if there is none with one of the steps."""
        complaint = ""
        for step in STEPS:
            try:
                with jax.default_device(jax.devices(platform)[0]):
                    check_grads(
                        function, tuple(floats), order=2, atol=TOLERANCE, rtol=TOLERANCE, eps=step
                    )
                return ""
            except Exception as error:  # also if JAX has no derivative of this order
                complaint = complaint or first_lines(error)
        return complaint

    complaint = check("ipu")
    if not complaint:
        return {"status": "works"}
    if not check("cpu"):
        return {"status": "wrong", "reason": complaint}
    with jax.default_device(jax.devices("ipu")[0]):
        got = _hessian_product(function, floats)
    assert got is not None
    for ours, theirs in zip(got, expected, strict=True):
        scale = max(1.0, float(np.nanmax(np.abs(theirs), initial=0, where=np.isfinite(theirs))))
        if not np.allclose(ours, theirs, HESSIAN_TOLERANCE, HESSIAN_TOLERANCE * scale, True):
            return {"status": "wrong", "reason": "the Hessian-vector product is not the CPU's"}
    return {"status": "works"}


def _of_floats(harness: Harness) -> tuple[Function, list[Any]]:
    """The harness as a function of its float32 arguments, with complex results as two parts."""
    import jax
    import jax.numpy as jnp

    arguments = list(harness.arguments())
    places = [i for i, x in enumerate(arguments) if _is_float(x)]

    def function(*floats: Any) -> list[Any]:
        full = list(arguments)
        for place, value in zip(places, floats, strict=True):
            full[place] = value
        leaves = jax.tree.leaves(harness.function(*full))
        complexes = [leaf for leaf in leaves if leaf.dtype == np.complex64]
        parts = [part for z in complexes for part in (z.real, z.imag)]
        return [leaf for leaf in leaves if _is_float(leaf)] + parts

    return jax.jit(function), [jnp.asarray(arguments[i]) for i in places]


def _is_float(value: Any) -> bool:
    return getattr(value, "dtype", None) == np.float32


def _hessian_product(function: Function, floats: list[Any]) -> list[Any] | None:
    """The Hessian of a weighted sum of the results times a vector; None if there is none."""
    import jax
    import jax.numpy as jnp

    if not floats or not any(x.size for x in floats) or not function(*floats):
        return None
    rng = np.random.RandomState(0)
    weights = [rng.uniform(0.5, 1.5, x.shape).astype(np.float32) for x in function(*floats)]
    along = tuple(rng.uniform(0.5, 1.5, x.shape).astype(np.float32) for x in floats)
    places = tuple(range(len(floats)))

    def weighted(*inputs: Any) -> Any:
        return sum(jnp.sum(w * y) for w, y in zip(weights, function(*inputs), strict=True))

    product = jax.jit(lambda *x: jax.jvp(jax.grad(weighted, places), x, along)[1])
    return [np.asarray(each) for each in jax.tree.leaves(product(*floats))]


if __name__ == "__main__":
    main()
