"""Every row of the op tables, run every way, against JAX on the CPU."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.cases import arithmetic, attributes, elementwise, linalg, structure
from tests.cases.case import Case

_done = itertools.count()
MODULES = (elementwise, structure, arithmetic, attributes, linalg)
CASES = [case for module in MODULES for case in module.CASES]
RUNS = [pytest.param(case, run, id=f"{case.name}-{run}") for case in CASES for run in case.runs]


def weighted_sum(f):
    """A scalar that depends on every float result of f, each element differently."""

    def total(*args):
        result = jnp.float32(0)
        for leaf in jax.tree.leaves(f(*args)):
            if jnp.issubdtype(leaf.dtype, jnp.floating):
                weights = np.cos(np.arange(leaf.size, dtype="f4")).reshape(leaf.shape) + 0.1
                result += (leaf.astype("float32") * weights).sum()
        return result

    return total


def prepared(case: Case, run: str):
    """The function to run and its arguments."""
    if run == "grad":
        wanted = tuple(
            i for i, a in enumerate(case.args) if jnp.issubdtype(np.asarray(a).dtype, jnp.floating)
        )
        return jax.jit(jax.grad(weighted_sum(case.f), wanted)), case.args
    if run == "vmap":
        args = tuple(np.stack([np.asarray(a)] * 3) for a in case.args)
        return jax.jit(jax.vmap(case.f)), args
    return (jax.jit(case.f) if run == "jit" else case.f), case.args


def on(device, f, args):
    with jax.default_device(device):
        results = f(*(jax.device_put(a, device) for a in args))
    return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


@pytest.fixture(autouse=True)
def _bounded_memory():
    """JAX keeps every compiled program; these tests compile thousands that are run once."""
    yield
    if next(_done) % 100 == 99:
        jax.clear_caches()


@pytest.mark.parametrize(("case", "run"), RUNS)
def test_case(case: Case, run: str) -> None:
    f, args = prepared(case, run)
    expected = on(jax.devices("cpu")[0], f, args)
    actual = on(jax.devices("ipu")[0], f, args)
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        rtol, atol = case.tolerance(theirs)
        if run == "grad":
            rtol, atol = 4 * rtol, 4 * atol
        if jnp.issubdtype(theirs.dtype, jnp.floating):
            np.testing.assert_allclose(ours.astype("f8"), theirs.astype("f8"), rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(ours, theirs)
