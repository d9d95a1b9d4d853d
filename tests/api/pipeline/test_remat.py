"""Recomputation: the same bits, more matmuls, less memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import io_callback

import ipujax as ipu

LAYERS, SAMPLES, WIDTH = 4, 256, 64
MATMUL_FLOPS = 2 * SAMPLES * WIDTH * WIDTH
WEIGHTS = jnp.asarray(
    np.random.default_rng(0).normal(size=(LAYERS, WIDTH, WIDTH)) / WIDTH**0.5, jnp.float32
)
X = jnp.asarray(np.random.default_rng(1).normal(size=(SAMPLES, WIDTH)), jnp.float32)
KEYS = jax.random.split(jax.random.PRNGKey(0), LAYERS)

Wrap = Callable[[Any], Any]
policies = jax.checkpoint_policies


def layer(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


def named_layers(weights: jax.Array, x: jax.Array) -> jax.Array:
    """The second product has a name, the third is a checkpoint."""
    x = jnp.tanh(checkpoint_name(layer(weights[0], x) @ weights[1], "second"))
    x = jnp.tanh(ipu.recomputation_checkpoint(x @ weights[2]))
    return jnp.sum(layer(weights[3], x) ** 2)


def compiled(fun: Any, *args: Any) -> Any:
    return jax.jit(fun).lower(*args).compile()


def recomputed_matmuls(program: Any, plain: Any) -> int:
    flops = [p.cost_analysis()["flops"] for p in (program, plain)]
    return round((flops[0] - flops[1]) / MATMUL_FLOPS)


def check_equal(got: Any, wanted: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, got, wanted)


def by_jax(policy: Any) -> Wrap:
    return lambda fun: jax.checkpoint(fun, policy=policy)


#: What wraps the four layers, and how many of their matmuls are computed again.
WRAPS: dict[str, tuple[Wrap, int]] = {
    "jax.checkpoint": (jax.checkpoint, 4),
    "remat": (ipu.remat, 3),
    "nothing": (ipu.remat(policy=policies.nothing_saveable), 3),
    "everything": (ipu.remat(policy=policies.everything_saveable), 0),
    "dots": (ipu.remat(policy=policies.dots_saveable), 0),
    "names": (ipu.remat(policy=policies.save_only_these_names("second")), 2),
    "names in JAX": (by_jax(policies.save_only_these_names("second")), 3),
}


@pytest.mark.parametrize("name", WRAPS)
def test_what_a_policy_does_not_keep_is_computed_again(name: str) -> None:
    wrap, expected = WRAPS[name]
    plain = compiled(jax.value_and_grad(named_layers, (0, 1)), WEIGHTS, X)
    program = compiled(jax.value_and_grad(wrap(named_layers), (0, 1)), WEIGHTS, X)
    check_equal(program(WEIGHTS, X), plain(WEIGHTS, X))
    assert recomputed_matmuls(program, plain) == expected


def each_layer(wrap: Wrap) -> Any:
    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        for w in weights:
            x = wrap(layer)(w, x)
        return jnp.sum(x**2)

    return jax.grad(loss, (0, 1))


def scanned(wrap: Wrap) -> Any:
    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        step = wrap(lambda x, w: (layer(w, x), None))
        return jnp.sum(jax.lax.scan(step, x, weights)[0] ** 2)

    return jax.grad(loss, (0, 1))


def nested(wrap: Wrap) -> Any:
    def pair(weights: jax.Array, x: jax.Array) -> jax.Array:
        for w in weights:
            x = wrap(layer)(w, x)
        return x

    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(wrap(pair)(weights[2:], wrap(pair)(weights[:2], x)) ** 2)

    return jax.grad(loss, (0, 1))


def dropout(wrap: Wrap) -> Any:
    def dropped(w: jax.Array, x: jax.Array, key: jax.Array) -> jax.Array:
        return jnp.where(jax.random.bernoulli(key, 0.9, x.shape[1:]), layer(w, x), 0)

    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        for w, key in zip(weights, KEYS, strict=True):
            x = wrap(dropped)(w, x, key)
        return jnp.sum(x**2)

    return jax.grad(loss, (0, 1))


def gradient_of_gradient(wrap: Wrap) -> Any:
    gradient = each_layer(wrap)
    return jax.grad(lambda w, x: jnp.sum(gradient(w, x)[0] ** 2))


def mapped(wrap: Wrap) -> Any:
    return lambda w, x: jax.vmap(each_layer(wrap), (None, 0))(w, x.reshape(2, -1, WIDTH))


#: Each with the number of matmuls that are computed again.
FUNCTIONS: dict[Callable[[Wrap], Any], int] = {
    each_layer: 4,
    scanned: 4,
    nested: 6,  # the first layer of each pair twice, the second once
    dropout: 4,
    gradient_of_gradient: 11,
    mapped: 4,
}


@pytest.mark.parametrize("wrap", [jax.checkpoint, ipu.remat])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_recomputation_takes_less_memory(function: Any, wrap: Wrap) -> None:
    plain, program = (compiled(function(w), WEIGHTS, X) for w in (lambda f: f, wrap))
    if function is gradient_of_gradient:  # JAX adds its terms in another order
        got, wanted = program(WEIGHTS, X), plain(WEIGHTS, X)
        assert jnp.max(jnp.abs(got - wanted)) < 1e-5 * jnp.max(jnp.abs(wanted))
    else:
        check_equal(program(WEIGHTS, X), plain(WEIGHTS, X))
    assert recomputed_matmuls(program, plain) == FUNCTIONS[function]
    kept, less = (p.memory_analysis().temp_size_in_bytes for p in (plain, program))
    assert less < 0.9 * kept


def test_what_a_device_draws_is_kept() -> None:
    def noisy(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(x * jax.lax.rng_uniform(jnp.float32(0), jnp.float32(1), (8,))))

    text = str(jax.make_jaxpr(jax.grad(ipu.remat(noisy)))(jnp.ones(8)))
    assert text.count("rng_uniform") == 1


@pytest.mark.parametrize("ordered", [True, False])
def test_effects_happen_once(ordered: bool) -> None:
    seen: list[int] = []

    def next_number() -> np.ndarray:
        seen.append(len(seen) + 1)
        return np.float32(seen[-1])

    def watched(x: jax.Array) -> jax.Array:
        like = jax.ShapeDtypeStruct((), jnp.float32)
        return jnp.sin(x * io_callback(next_number, like, ordered=ordered))

    got = jax.jit(jax.grad(ipu.remat(watched)))(2.0)
    np.testing.assert_allclose(got, np.cos(2.0), rtol=1e-6)
    jax.effects_barrier()
    assert seen == [1]


def test_offloading_policies_reach_jax() -> None:
    policy = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["second"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    gradient = jax.grad(ipu.remat(named_layers, policy))
    assert "f32<host>[256,64]" in str(jax.make_jaxpr(gradient)(WEIGHTS, X))


def test_methods_can_be_decorated() -> None:
    class Model:
        @ipu.remat
        def __call__(self, x: jax.Array) -> jax.Array:
            return jnp.sin(x)

        @ipu.remat(policy=policies.dots_saveable)
        def twice(self, x: jax.Array) -> jax.Array:
            return 2 * x

    assert Model()(0.0) == 0
    assert Model().twice(1.0) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: ipu.remat(3),
        lambda: ipu.remat(layer, "dots"),
        lambda: ipu.remat(layer, mode="later"),
        lambda: ipu.stage(layer, remat="later"),
        lambda: ipu.pipeline([layer], micro_batches=1, remat=3),
    ],
)
def test_what_is_no_recomputation_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ipu.PipelineError, match=r"needs .*; got (3|'dots'|'later')\. "):
        make()
