"""Normalised images against NumPy, on IPUs and on the CPU."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

OFFSETS = np.array([0.5, 0.25, 0.125], np.float32)
SCALES = np.array([2.0, 4.0, 0.5], np.float32)


def normalised(image: np.ndarray, scale: float) -> np.ndarray:
    out = np.zeros((*image.shape[:-1], 4))
    for channel in range(3):
        shifted = image[..., channel].astype(np.float64) * scale - OFFSETS[channel]
        out[..., channel] = shifted * SCALES[channel]
    return out


@pytest.mark.parametrize("platform", ["ipu", "cpu"])
@pytest.mark.parametrize(
    ("dtype", "result", "tolerance"),
    [(np.uint8, np.float16, 5e-3), (np.float16, np.float16, 5e-3), (np.float32, np.float32, 2e-6)],
)
def test_values(platform: str, dtype, result, tolerance: float):
    image = np.random.default_rng(0).integers(0, 256, (2, 5, 7, 3)).astype(dtype)

    def run(image):
        return ipu.ops.normalise_image(image, OFFSETS, SCALES, 1 / 256)

    got = jax.jit(run)(jax.device_put(image, jax.devices(platform)[0]))
    assert got.dtype == result
    np.testing.assert_allclose(got, normalised(image, 1 / 256), rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(got[..., 3], 0)


def test_gradient_and_batches():
    image = np.random.default_rng(1).normal(size=(2, 4, 3)).astype(np.float32)

    def total(image, offsets):
        return jnp.sum(ipu.ops.normalise_image(image, offsets, SCALES, 0.5) ** 2) / 2

    of_image, of_offsets = jax.jit(jax.grad(total, (0, 1)))(image, OFFSETS)
    y = normalised(image, 0.5)[..., :3]
    np.testing.assert_allclose(of_image, y * SCALES * 0.5, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(of_offsets, -(y * SCALES).sum((0, 1)), rtol=1e-5, atol=1e-5)
    rows = jax.vmap(lambda x: ipu.ops.normalise_image(x, OFFSETS, SCALES))(image)
    np.testing.assert_allclose(rows, normalised(image, 1), rtol=1e-5, atol=1e-6)
    assert ipu.ops.normalise_image(image[:0], OFFSETS, SCALES).shape == (0, 4, 4)


REFUSED = [
    (lambda: ipu.ops.normalise_image(jnp.ones((2, 4)), OFFSETS, SCALES), r"\[..., 3\] .*\[2, 4\]"),
    (lambda: ipu.ops.normalise_image(jnp.ones(3, int), OFFSETS, SCALES), "uint8, .*got int32"),
    (
        lambda: ipu.ops.normalise_image(jnp.ones(3), [1.0], SCALES),
        r"channel_offsets \[3\]; got \[1",
    ),
    (lambda: ipu.ops.normalise_image(jnp.ones(3), OFFSETS, SCALES, np.nan), "scale .*; got nan"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_refused(call, text: str):
    with pytest.raises(ipu.ConfigError, match=text):
        call()
