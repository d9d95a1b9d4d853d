"""Plans that were kept make the same program as new ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from ipujax.compiler import plans
from tests.mutants.corpus import sealed


def program(weights, images, kernel):
    def loss(weights, kernel):
        shown = jax.lax.conv(images, kernel, (1, 1), "SAME")
        rows = shown.reshape(images.shape[0], -1)
        for w in weights:
            rows = jnp.tanh(rows @ w)
        return (rows**2).mean()

    return jax.value_and_grad(loss, (0, 1))(weights, kernel)


SHAPES = (
    [jax.ShapeDtypeStruct((n, 96), jnp.float32) for n in (256, 96)],
    jax.ShapeDtypeStruct((4, 3, 8, 8), jnp.float16),
    jax.ShapeDtypeStruct((4, 3, 3, 3), jnp.float16),
)


def executable(**options: str) -> bytes:
    return sealed(program, SHAPES, options or None)


@pytest.fixture(autouse=True)
def _without_plans(monkeypatch):
    monkeypatch.setattr(plans, "_kept", {})


def test_kept_plans_make_the_same_executable():
    new, half = executable(), executable(ipu_partials_type="half")
    kept = len(plans.plans_for("gc200"))
    assert kept > 8
    assert executable() == new
    assert executable(ipu_partials_type="half") == half
    assert len(plans.plans_for("gc200")) == kept
    assert half != new


def test_plans_are_of_one_machine_and_not_too_many(monkeypatch):
    executable()
    kept = plans.plans_for("gc200")
    assert len(plans.plans_for("bow")) == 0
    assert plans.plans_for("gc200") is kept
    monkeypatch.setattr(plans, "MOST_PLANS", len(kept) - 1)
    assert plans.plans_for("gc200") is not kept
