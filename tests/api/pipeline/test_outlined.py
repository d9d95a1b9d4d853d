"""Outlined functions: the same bits as the plain function, with less code."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import ipujax as ipu
from tests.conftest import RunPython

Layer = Callable[..., Any]
NUM_LAYERS = 4
WIDTH = 16
RANDOM = np.random.default_rng(0)
WEIGHTS = [
    {"w": jnp.asarray(RANDOM.normal(size=(WIDTH, WIDTH)) / 4, jnp.float32), "b": jnp.ones(WIDTH)}
    for _ in range(NUM_LAYERS)
]
INPUT = jnp.asarray(RANDOM.normal(size=(6, WIDTH)), jnp.float32)


def layer(weights: dict[str, jax.Array], x: jax.Array, scale: float = 1.0) -> jax.Array:
    """Sums over the input's first axis, where the order of its elements in memory matters."""
    hidden = jax.nn.gelu(x @ weights["w"] + weights["b"])
    centred = hidden - hidden.mean(-1, keepdims=True) + x.mean(0, keepdims=True)
    return x + scale * centred * lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1)


def model(layer: Layer, weights: Any, x: jax.Array) -> jax.Array:
    for own in weights:
        x = layer(own, x)
    return x


def loss(layer: Layer, weights: Any, x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sin(model(layer, weights, x)))


def nested(layer: Layer, weights: Any, x: jax.Array) -> jax.Array:
    pair = ipu.outlined(lambda first, second, x: layer(second, layer(first, x)))
    return pair(weights[2], weights[3], pair(weights[0], weights[1], layer(weights[0], x)))


def dropout(layer: Layer, weights: Any, x: jax.Array) -> jax.Array:
    for key, own in zip(jax.random.split(jax.random.key(1), len(weights)), weights, strict=True):
        x = layer(own, jnp.where(jax.random.bernoulli(key, 0.8, x.shape), x, 0))
    return x


def in_loop(layer: Layer, weights: Any, x: jax.Array) -> jax.Array:
    def body(x: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = layer(weights[1], layer(weights[0], x), scale=scale)
        return lax.cond(scale > 1, lambda x: layer(weights[2], x), jnp.tanh, x), x.sum()

    return lax.scan(body, x, jnp.arange(4.0))[0]


def of_views(layer: Layer, weights: Any, x: jax.Array) -> jax.Array:
    """Arguments that lie in memory in several orders: transposed, reversed, sliced, repeated."""
    square = jnp.concatenate([x, x, x[:4]])
    others = [square.T, square[::-1], jnp.pad(square, 3)[3:-3, 3:-3], square[:1] + 0 * square]
    repeated = jnp.broadcast_to(x[:1], square.shape)
    return sum(layer(weights[0], other) for other in [square, *others, repeated])


def stacked_weights(layer: Layer, weights: Any, x: jax.Array) -> jax.Array:
    whole = jax.tree.map(lambda *leaves: jnp.stack(leaves), *weights)
    for i in range(NUM_LAYERS):
        x = layer({name: leaf[i] for name, leaf in whole.items()}, x)
    return x


def of_random_views(layer: Layer, weights: Any, x: jax.Array) -> jax.Array:
    """Strided slices of one array in any direction and order of axes, some of one row repeated."""
    random = np.random.default_rng(0)
    whole = jnp.sin(jnp.arange(40.0**3).reshape(40, 40, 40) + x[0, 0])
    total = jnp.float32(0)
    for _ in range(24):
        view = lax.index_in_dim(whole, random.integers(40), random.integers(3), keepdims=False)
        for dim in range(2):
            stride = random.integers(1, 3)
            start = random.integers(40 - (WIDTH - 1) * stride)
            view = lax.slice_in_dim(view, start, start + (WIDTH - 1) * stride + 1, stride, dim)
        if random.random() < 0.3:
            view = lax.rev(view, tuple(np.flatnonzero(random.random(2) < 0.7)))
        if random.random() < 0.3:
            view = jnp.broadcast_to(view[:1], view.shape)
        total += layer(weights[0], view.T if random.random() < 0.5 else view)
    return total


FORWARD = [model, nested, dropout, in_loop, of_views, of_random_views, stacked_weights]


def gradient(layer: Layer, weights: Any, x: jax.Array) -> Any:
    return jax.value_and_grad(lambda w, x: loss(layer, w, x), (0, 1))(weights, x)


def per_example(layer: Layer, weights: Any, x: jax.Array) -> Any:
    one = jax.grad(lambda w, x: loss(layer, w, x[None]))
    return jax.vmap(one, (None, 0))(weights, x)


def hessian_product(layer: Layer, weights: Any, x: jax.Array) -> Any:
    return jax.jvp(lambda w: gradient(layer, w, x), (weights,), (weights,))


def rematerialised(layer: Layer, weights: Any, x: jax.Array) -> Any:
    return gradient(jax.checkpoint(layer), weights, x)


def gradient_of_loop(layer: Layer, weights: Any, x: jax.Array) -> Any:
    return jax.grad(lambda w: jnp.sum(in_loop(layer, w, x)))(weights)


DERIVED = [gradient, per_example, hessian_product, rematerialised, gradient_of_loop]


def assert_same_bits(got: Any, wanted: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, got, wanted)


@pytest.mark.parametrize("outline", ["marked", "auto"])
@pytest.mark.parametrize("function", [*FORWARD, *DERIVED], ids=lambda f: f.__name__)
def test_the_bits_are_those_of_the_plain_function(
    function: Callable[..., Any], outline: str
) -> None:
    """In auto mode nothing is marked, and every piece of code that repeats is outlined."""
    own = ipu.outlined(layer) if outline == "marked" else layer
    options: dict[str, Any] = {"ipu_outline": outline, "ipu_outline_threshold": 0}
    got = jax.jit(lambda w, x: function(own, w, x), compiler_options=options)(WEIGHTS, INPUT)
    wanted = jax.jit(lambda w, x: function(layer, w, x))(WEIGHTS, INPUT)
    assert_same_bits(got, wanted)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.complex64, jnp.float64])
def test_other_dtypes(dtype: Any) -> None:
    def poly(w: jax.Array, x: jax.Array) -> jax.Array:
        return (x @ w) * x - x.sum(0)

    with jax.enable_x64(dtype == jnp.float64):
        weights = [own["w"].astype(dtype) for own in WEIGHTS]
        x = INPUT.astype(dtype)
        got = jax.jit(lambda w, x: model(ipu.outlined(poly), w, x))(weights, x)
        assert_same_bits(got, jax.jit(lambda w, x: model(poly, w, x))(weights, x))


def test_it_is_a_plain_call_without_jit_and_on_other_platforms() -> None:
    wanted = model(layer, WEIGHTS, INPUT)
    np.testing.assert_allclose(model(ipu.outlined(layer), WEIGHTS, INPUT), wanted, 1e-5, 1e-5)
    with jax.default_device(jax.devices("cpu")[0]):
        got = jax.jit(lambda w, x: gradient(ipu.outlined(layer), w, x))(WEIGHTS, INPUT)
        wanted = jax.jit(lambda w, x: gradient(layer, w, x))(WEIGHTS, INPUT)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-5, 1e-5), got, wanted)


def test_replicas_run_one_code() -> None:
    mapped = ipu.pmap(lambda x: gradient(ipu.outlined(layer), WEIGHTS, x))
    batch = jnp.stack([INPUT, 2 * INPUT])
    wanted = jax.jit(lambda x: gradient(layer, WEIGHTS, x))
    assert_same_bits(
        jax.tree.map(np.asarray, mapped(batch)),
        jax.tree.map(lambda *a: np.stack(a), *map(wanted, batch)),
    )


def test_donated_arguments_are_updated_in_place() -> None:
    def step(weights: Any, x: jax.Array) -> Any:
        grads = jax.grad(lambda w: loss(ipu.outlined(layer), w, x))(weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, grads)

    weights = jax.tree.map(jnp.array, WEIGHTS)
    wanted = jax.jit(step)(weights, INPUT)
    addresses = [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(weights)]
    got = jax.jit(step, donate_argnums=0)(weights, INPUT)
    assert [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(got)] == addresses
    assert_same_bits(got, wanted)


def test_effects_keep_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    def noisy(x: jax.Array) -> jax.Array:
        jax.debug.print("{}", x, ordered=True)
        return x + 1

    own = ipu.outlined(noisy)
    jax.block_until_ready(jax.jit(lambda x: own(own(own(x))))(1))
    jax.effects_barrier()
    assert capsys.readouterr().out.split() == ["1", "2", "3"]


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ipu.PlacementError, match=r"\[ipu.outlined\] needs a function; got 3"):
        ipu.outlined(3)  # type: ignore[arg-type]


PIPELINES = """
import json, jax, jax.numpy as jnp, numpy as np, ipujax as ipu

random = np.random.default_rng(0)
batch = jnp.asarray(random.normal(size=(8, 4, 16)), jnp.float32)
weights = [[jnp.asarray(random.normal(size=(16, 16)) / 4, jnp.float32)] * 8] * 2

def layer(w, x):
    return jax.nn.softmax(jnp.tanh(x @ w) @ w.T)

def run(layer):
    def layers(weights, x):
        for own in weights:
            x = layer(own, x)
        return x
    def head(weights, x):
        return jnp.mean(layers(weights, x) ** 2)
    loss = ipu.pipeline([layers, head], micro_batches=8, reduction="mean")
    sharded = lambda w, x: ipu.stage(head, ipu=1)(w[1], ipu.stage(layers, ipu=0)(w[0], x))
    for step in (jax.value_and_grad(loss), jax.value_and_grad(lambda w, b: sharded(w, b[0]))):
        compiled = jax.jit(step).lower(weights, batch).compile()
        yield compiled(weights, batch), compiled.memory_analysis().generated_code_size_in_bytes

for (got, less), (wanted, code) in zip(run(ipu.outlined(layer)), run(layer)):
    same = jax.tree.map(np.array_equal, got, wanted)
    print(json.dumps({"same": all(jax.tree.leaves(same)), "less": less / code}))
"""


def test_stages_call_functions_of_their_own_ipu(run_python: RunPython) -> None:
    env = {"JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_PLATFORMS": "ipu,cpu"}
    done = run_python("-c", PIPELINES, env=env)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["same"] for row in rows] == [True, True]
    assert all(row["less"] < 0.95 for row in rows), rows
