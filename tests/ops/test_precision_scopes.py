"""ipu.precision holds for the ops of ipu.ops, and inside stages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu


def convolved(x, w):
    return ipu.ops.multi_conv([ipu.ops.Conv(x, w)])[0]


def float8_product(x, w):
    x, w = ipu.ops.cast_to_float8(x), ipu.ops.cast_to_float8(w)
    return ipu.ops.float8_matmul(x, w, emulate=True)


# Products of 8-bit floats whose sum lies between two halves: 2048 + 0.5, as 8 x 256 + 0.5 x 1.
LEFT = np.tile(np.array([[128, 128, 0.5]], np.float32), (2000, 1))
RIGHT = np.array([[8], [8], [1]], np.float32)
CASES = {
    "multi_conv": (
        convolved,
        LEFT.astype(np.float16)[:, :, None],
        RIGHT.astype(np.float16).T[:, :, None],
    ),
    "float8_matmul": (float8_product, LEFT, RIGHT),
    "serialized_matmul": (
        lambda x, w: ipu.ops.serialized_matmul(x, w, 4, "a_columns"),
        LEFT.astype(np.float16),
        RIGHT.astype(np.float16),
    ),
}
cases = pytest.mark.parametrize("name", CASES)


def scoped(fun, **options):
    def inside(*args):
        with ipu.precision(**options):
            return fun(*args)

    return inside


@cases
def test_stochastic_rounding(name):
    fun, x, w = CASES[name]
    assert np.unique(jax.jit(fun)(x, w)).tolist() == [2048]
    got = np.asarray(jax.jit(scoped(fun, stochastic_rounding=True))(x, w), np.float64)
    assert np.unique(got).tolist() == [2048, 2050]
    assert abs(got.mean() - 2048.5) < 0.15


@pytest.mark.parametrize("name", ["multi_conv", "serialized_matmul"])
def test_half_overflow(name):
    fun, x, w = CASES[name]
    for overflow, beyond in (("infinity", np.inf), ("saturate", 65504), ("nan", np.nan)):
        got = jax.jit(scoped(fun, half_overflow=overflow))(
            x[:4] * np.float16(32), w * np.float16(8)
        )
        np.testing.assert_array_equal(np.unique(got), [beyond])


def test_partials_of_multi_conv():
    x, w = np.full((1, 4096, 1), 1, np.float16), np.full((1, 4096, 1), 0.7, np.float16)
    exact = jax.jit(scoped(convolved, partials_type="float"))(x, w)
    rounded = jax.jit(scoped(convolved, partials_type="half"))(x, w)
    want = np.float16(4096 * np.float64(w[0, 0, 0]))
    assert exact.item() == want
    assert abs(rounded.item() - want) < 0.05 * want
    own = [ipu.ops.Conv(x, w, options={"partialsType": "half"}), ipu.ops.Conv(x, w)]
    first, second = jax.jit(lambda: ipu.ops.multi_conv(own))()
    assert (first.item(), second.item()) == (rounded.item(), exact.item())


@cases
def test_exceptions(name):
    fun, x, w = CASES[name]
    checked = jax.jit(scoped(fun, floating_point_exceptions="inv"))
    jax.block_until_ready(checked(x[:4], w))
    with pytest.raises(jax.errors.JaxRuntimeError, match="inv"):
        jax.block_until_ready(checked(x[:4] * np.float16(np.nan), w))


def test_each_stage_has_its_own():
    fun, x, w = CASES["serialized_matmul"]

    def two(x, w):
        first = ipu.stage(scoped(fun, stochastic_rounding=True), ipu=0)(x, w)
        return first, ipu.stage(fun, ipu=0)(x, w)

    first, second = jax.jit(two)(x, w)
    assert np.unique(first).tolist() == [2048, 2050]
    assert np.unique(second).tolist() == [2048]


def test_autocast_inside_of_a_stage_and_its_gradient():
    w, x = np.eye(8, dtype=np.float32), np.ones((4, 8), np.float32)

    def loss(w):
        with ipu.precision(partials_type="half"):
            y = ipu.stage(ipu.autocast(lambda w, x: jnp.tanh(x @ w)), ipu=0)(w, x)
        return y.sum()

    text = jax.jit(jax.grad(loss)).lower(w).as_text()
    assert "dot_general" in text
    assert "xf16>" in text
    np.testing.assert_allclose(
        jax.jit(jax.grad(loss))(w), np.full((8, 8), 4 * (1 - np.tanh(1) ** 2)), rtol=5e-3
    )
