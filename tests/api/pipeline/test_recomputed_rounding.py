"""Random programs whose recomputed float16 values must be those of the forward pass, to the bit."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

HALF = jnp.float16
ROUNDED = {"ipu_stochastic_rounding": True}
LARGEST = 2000  # elements, of what grows


def small(f):
    return lambda x: f(x) if x.size < LARGEST else x


def captured(value, dtype=HALF):
    """An array of outside, which jax.checkpoint hands to its function as an argument."""
    with jax.ensure_compile_time_eval():
        return jnp.asarray(value, dtype)


def column(x):
    return jnp.linspace(0.1, 0.9, x.shape[0], dtype=HALF).reshape(-1, *[1] * (x.ndim - 1))


#: They move elements, or round them at random, or both.
STEPS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "add": lambda x: x + HALF(0.15),
    "broadcast": small(lambda x: jnp.broadcast_to(x[None], (2, *x.shape))),
    "broadcast_last": small(lambda x: jnp.broadcast_to(x[..., None], (*x.shape, 2))),
    "columns": lambda x: x + column(x),
    "concatenate": small(lambda x: jnp.concatenate([x, jnp.sin(x)])),
    "convert": lambda x: (x.astype(jnp.float32) * 1.1).astype(HALF),
    "flatten": lambda x: x.reshape(-1),
    "mean": lambda x: x - x.mean(-1, keepdims=True),
    "multiply": lambda x: x * captured(0.93),
    "outer": lambda x: x * x.sum(0, keepdims=True) * HALF(0.1),
    "pad": lambda x: jnp.pad(x, [(1, 0)] + [(0, 0)] * (x.ndim - 1), constant_values=1),
    "product": lambda x: x.reshape(x.shape[0], -1) @ jnp.full((x[0].size, 3), 0.1, HALF),
    "reshape": lambda x: x.reshape(1, *x.shape) if x.ndim < 2 else x.reshape(-1, *x.shape[2:]),
    "reverse": lambda x: x[::-1],
    "rows": lambda x: x + jnp.linspace(0.1, 0.9, x.shape[-1], dtype=HALF),
    "slice": lambda x: x[: max(1, x.shape[0] - 1)],
    "slice_last": lambda x: x[..., -max(1, x.shape[-1] - 1) :],
    "softmax": jax.nn.softmax,
    "take": lambda x: x[captured([0, x.shape[0] - 1, 0], jnp.int32)],
    "tanh": jnp.tanh,
    "transpose": lambda x: x.T,
    "transposed_sum": lambda x: x.T * x.T + x.T,
    "where": lambda x: jnp.where(x > 0.5, x * HALF(1.1), x * HALF(0.7)),
}


def product(names, w, x):
    for name in names:
        x = STEPS[name](x)
    return x * w, x


def ones(names, x):
    return jnp.ones(jax.eval_shape(lambda x: product(names, HALF(1), x)[1], x).shape, HALF)


def value_and_recomputed(names, w, x):
    """The gradient of w is the value that the backward pass computes again."""

    def loss(w, x):
        z, y = jax.checkpoint(product, static_argnums=0)(names, w, x)
        return z.astype(jnp.float32).sum(), y

    gradient, value = jax.grad(loss, has_aux=True)(w, x)
    return value, gradient


def on_one(names, x):
    return value_and_recomputed(names, ones(names, x), x)


def on_devices(names, x):
    """The dimension of the devices is one more reshape."""
    mesh = Mesh(np.array(jax.devices()[:2]), ("d",))

    def local(w, x):
        return [made[None] for made in value_and_recomputed(names, w[0], x[0])]

    mapped = jax.shard_map(local, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    return mapped(jnp.stack([ones(names, x)] * 2), jnp.stack([x, x]))


def in_a_scan(names, x):
    def loss(ws, x):
        def body(scale, w):
            z, y = jax.checkpoint(product, static_argnums=0)(names, w, x * scale)
            return scale + HALF(0.01), (z, y)

        _, (z, y) = lax.scan(body, HALF(1), ws)
        return z.astype(jnp.float32).sum(), y

    gradient, values = jax.grad(loss, has_aux=True)(jnp.stack([ones(names, x)] * 3), x)
    return values, gradient


def drawn(seed: int) -> tuple[tuple[str, ...], np.ndarray]:
    """The steps of a program, of which one rounds, and its argument."""
    rng = np.random.default_rng(seed)
    shape = rng.choice([1, 2, 3, 4, 5, 6, 8], size=rng.integers(1, 4))
    names = [str(name) for name in rng.choice(list(STEPS), size=rng.integers(2, 7))]
    names.insert(int(rng.integers(len(names) + 1)), "multiply")
    return tuple(names), rng.uniform(0.5, 1.5, shape).astype(np.float16)


PROGRAMS = [
    ("multiply", "slice", "take"),  # indices are constants
    ("multiply", "softmax", "slice", "multiply"),
    ("flatten", "rows", "multiply"),
    ("multiply", "flatten", "mean"),
    ("reshape", "broadcast", "transpose", "multiply"),
]


@pytest.mark.parametrize("place", [on_one, on_devices, in_a_scan])
@pytest.mark.parametrize("seed", range(20))
def test_random_programs_recompute_the_bits(place, seed: int):
    names, x = drawn(seed) if seed >= len(PROGRAMS) else (PROGRAMS[seed], drawn(seed)[1])
    run = jax.jit(lambda x: place(names, x), compiler_options=ROUNDED)
    value, recomputed = run(x)
    np.testing.assert_array_equal(recomputed, value, str(names))
    again = run(x)[0]
    if value.size > 100 and names[-1] == "multiply":  # it does round at random
        assert (np.asarray(again) != np.asarray(value)).any()
