"""Random ops: moments, bounds, seeds, under vmap, scan and replicas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.errors import ConfigError

N = 20_000


def on_cpu(fun):
    with jax.default_device(jax.devices("cpu")[0]):
        return np.asarray(jax.jit(fun)())


DISTRIBUTIONS = {
    "uniform": (lambda **k: ipu.ops.random_uniform((N,), low=-1, high=3, **k), 1, 16 / 12),
    "integers": (
        lambda **k: ipu.ops.random_uniform((N,), low=1, high=6, **k | {"dtype": jnp.int32}),
        3.5,
        35 / 12,
    ),
    "normal": (lambda **k: ipu.ops.random_normal((N,), mean=2, stddev=3, **k), 2, 9),
    "truncated": (lambda **k: ipu.ops.random_truncated_normal((N,), mean=1, **k), 1, 0.7737),
    "bernoulli": (lambda **k: ipu.ops.random_bernoulli((N,), probability=0.3, **k), 0.3, 0.21),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_moments(name):
    draw, mean, variance = DISTRIBUTIONS[name]
    for dtype in (jnp.float32, jnp.float16):
        run = jax.jit(lambda dtype=dtype: draw(dtype=dtype, seed=7))
        for got in (np.asarray(run()), on_cpu(run)):
            got = got.astype(np.float64)
            assert abs(got.mean() - mean) < 5 * np.sqrt(variance / N)
            assert abs(got.var() - variance) < 0.05 * variance
    np.testing.assert_array_equal(run(), run())
    assert (jax.jit(lambda: draw(seed=8))() != run()).any()


def test_bounds_and_dtypes():
    drawn = ipu.ops.random_truncated_normal((N,), alpha=1.5, seed=1)
    assert 1.4 < abs(np.asarray(drawn)).max() <= 1.5
    drawn = np.asarray(ipu.ops.random_uniform((N,), jnp.int32, -2, 2, seed=1))
    assert set(drawn.tolist()) == {-2, -1, 0, 1, 2}
    assert ipu.ops.random_normal((3,), jnp.bfloat16, seed=1).dtype == jnp.bfloat16
    assert ipu.ops.random_normal((0, 3), seed=1).shape == (0, 3)
    assert ipu.ops.random_bernoulli((), jnp.int32, 1.0, seed=1) == 1


def test_seeds():
    def draw(seed):
        return ipu.ops.random_normal((50,), seed=seed)

    key = jax.random.key(3)
    np.testing.assert_array_equal(draw(key), draw(jax.random.key_data(key)))
    np.testing.assert_array_equal(draw(3), draw(key))
    batch = jax.jit(jax.vmap(draw))(jax.random.split(key, 3))
    np.testing.assert_array_equal(batch[2], draw(jax.random.split(key, 3)[2]))
    assert len(np.unique(batch)) == 150


def test_reset_seed():
    draw = jax.jit(lambda: ipu.ops.random_normal((50,)))
    ipu.reset_seed(5)
    first, second = np.asarray(draw()), np.asarray(draw())
    assert (first != second).all()
    ipu.reset_seed(5)
    np.testing.assert_array_equal(draw(), first)
    np.testing.assert_array_equal(draw(), second)
    ipu.reset_seed(6)
    assert (np.asarray(draw()) != first).all()
    _, steps = jax.jit(
        lambda: jax.lax.scan(lambda c, _: (c, ipu.ops.random_normal((4,))), 0, None, length=3)
    )()
    assert len(np.unique(steps)) == 12


def test_replicas():
    draw = ipu.pmap(lambda x: x + ipu.ops.random_normal((20,)))
    x = np.zeros((2, 20), np.float32)
    ipu.reset_seed(5)
    own = np.asarray(draw(x))
    assert (own[0] != own[1]).all()
    ipu.reset_seed(5, identical_replicas=True)
    same = np.asarray(draw(x))
    np.testing.assert_array_equal(same[0], same[1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ipu.reset_seed(-1), "from 0 to 2\\*\\*64 - 1; got -1"),
        (lambda: ipu.reset_seed(1.5), "got 1.5"),
        (lambda: ipu.ops.random_normal((3,), seed=[1.0, 2.0]), "key of JAX, an integer"),
        (lambda: ipu.ops.random_normal((3,), jnp.int32), "got int32"),
        (lambda: ipu.ops.random_normal((3,), stddev=-1.0), "deviation of 0 or more"),
        (lambda: ipu.ops.random_normal((-3,)), "sizes of 0 or more"),
        (lambda: ipu.ops.random_uniform((3,), low=2, high=1), "low <= high; got 2 and 1"),
        (lambda: ipu.ops.random_uniform((3,), jnp.int32, 0, 2**40), "bounds that are int32"),
        (lambda: ipu.ops.random_truncated_normal((3,), alpha=0), "alpha greater than 0; got 0"),
        (lambda: ipu.ops.random_bernoulli((3,), probability=2), "from 0 to 1; got 2"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ConfigError, match=words):
        call()
