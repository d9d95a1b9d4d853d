"""Windows of any shape and padding, from any initial value."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

BODIES: dict[str, tuple[Callable, float]] = {
    "add": (lax.add, 2.5),
    "multiply": (lax.mul, 1.5),
    "maximum": (lax.max, 0.25),
    "another": (lambda a, b: a + b + 1.0, 0.5),
    "logarithm": (jnp.logaddexp, 0.5),
}


@pytest.fixture
def reference() -> jax.Device:
    """The CPU: StableHLO's text has padding combined, so its backend is what decides."""
    return jax.devices("cpu")[0]


def random_window(rng: np.random.Generator, long: bool) -> tuple[tuple[int, int], dict]:
    def pair(low: int, high: int) -> tuple[int, int]:
        first, second = rng.integers(low, high + 1, 2)
        return int(first), int(second)

    shape = (pair(1, 3)[0], 50) if long else pair(1, 8)
    sizes = tuple(pair(1, size)[0] for size in shape)
    return shape, {
        "window_dimensions": (1, pair(32, 50)[0]) if long else sizes,
        "window_strides": pair(1, 2),
        "padding": (pair(0, 4), pair(0, 4)),
        "base_dilation": (1, 1) if long else pair(1, 2),
        "window_dilation": (1, 1) if long else pair(1, 2),
    }


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("body", BODIES)
def test_padding_does_not_repeat_the_initial_value(
    body: str, long: bool, device: jax.Device, reference: jax.Device
):
    combine, init = BODIES[body]
    rng = np.random.default_rng(57)
    for _ in range(8):
        shape, window = random_window(rng, long)
        x = rng.standard_normal(shape).astype(np.float32)

        @jax.jit
        def reduced(x, window=window):
            return lax.reduce_window(x, np.float32(init), combine, **window)

        want = reduced(jax.device_put(x, reference))
        np.testing.assert_allclose(
            reduced(jax.device_put(x, device)), want, rtol=1e-5, atol=1e-5, err_msg=str(window)
        )


@pytest.mark.parametrize("length", [3, 40])
def test_sums_of_complex_exponentials_are_numbers(
    length: int, device: jax.Device, reference: jax.Device
):
    # The body gives NaN for an initial value twice: so padding has to be left out.
    rng = np.random.default_rng(58)
    x = (rng.standard_normal(length) + 1j * rng.standard_normal(length)).astype(np.complex64)
    want = jax.jit(lax.cumlogsumexp)(jax.device_put(x, reference))
    assert np.isfinite(want).all()
    got = jax.jit(lax.cumlogsumexp)(jax.device_put(x, device))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
