"""What `recompute_layers` computes again: as much as `ipu.remat` would, and the same numbers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

FUNCTIONS: list[Callable[[Any], Any]] = [
    jnp.tanh,
    jax.nn.gelu,
    jax.nn.softmax,
    lambda x: jnp.cumsum(x, 1) / 50,
    lambda x: x[:, ::-1] * jax.nn.sigmoid(x),
    lambda x: jnp.sort(x, 1),
    lambda x: jnp.where(x > 0, x, 0.1 * x) - x.mean(1, keepdims=True),
    lambda x: jax.lax.fori_loop(0, 3, lambda _, y: jnp.sin(y), x),
]


def network(layers: list[list[Any]], wrap: Any = lambda f: f) -> Callable[..., Any]:
    """A loss of layers that each apply a product and some functions."""

    def loss(weights: Any, x: Any) -> Any:
        for i, (w, functions) in enumerate(zip(weights, layers, strict=True)):

            def layer(w: Any, x: Any, functions: Any = functions) -> Any:
                x = x @ w
                for f in functions:
                    x = f(x)
                return x

            with jax.named_scope(f"layer{i}"):
                x = wrap(layer)(w, x)
        return jnp.mean(x**2)

    return loss


def compiled(fun: Any, *args: Any, layers: str = "") -> Any:
    lowered = jax.jit(fun).trace(*args).lower(lowering_platforms=("ipu",))
    return lowered.compile({"ipu_recompute_layers": layers})


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_keep_every_bit(seed: int) -> None:
    rng = random.Random(seed)
    layers = [rng.choices(FUNCTIONS, k=rng.randint(1, 3)) for _ in range(rng.randint(2, 5))]
    key = jax.random.key(seed)
    weights = [
        jax.random.normal(jax.random.fold_in(key, i), (32, 32)) / 6 for i in range(len(layers))
    ]
    x = jax.random.normal(key, (48, 32))
    step = jax.value_and_grad(network(layers), argnums=(0, 1))
    wanted = compiled(step, weights, x)(weights, x)
    chosen = ",".join(f"layer{i}" for i in range(len(layers)) if rng.random() < 0.7)
    for pattern in ("layer*", chosen, "nothing"):
        found = compiled(step, weights, x, layers=pattern)(weights, x)
        jax.tree.map(np.testing.assert_array_equal, found, wanted)


def test_it_saves_as_much_as_remat_by_hand() -> None:
    layers = [[jax.nn.gelu, jax.nn.softmax]] * 8
    weights = [jax.ShapeDtypeStruct((512, 512), jnp.float32)] * 8
    x = jax.ShapeDtypeStruct((4096, 512), jnp.float32)
    plain = compiled(jax.grad(network(layers)), weights, x).cost_analysis()
    named = compiled(jax.grad(network(layers)), weights, x, layers="layer*").cost_analysis()
    by_hand = compiled(jax.grad(network(layers, ipu.remat)), weights, x).cost_analysis()
    for key in ("worst tile temporaries bytes", "cycles"):
        assert named[key] == pytest.approx(by_hand[key], rel=0.01)
    assert named["worst tile temporaries bytes"] < 0.8 * plain["worst tile temporaries bytes"]


def test_only_the_named_layers_run_again() -> None:
    layers = [[jax.nn.gelu]] * 6
    weights = [jax.ShapeDtypeStruct((512, 512), jnp.float32)] * 6
    x = jax.ShapeDtypeStruct((4096, 512), jnp.float32)

    def products(layers_: str) -> int:
        report = ipu.report(
            jax.grad(network(layers)), weights, x, options={"ipu_recompute_layers": layers_}
        )
        return sum(step.op == "dot_general" for step in report.steps)

    # The last layer's backward pass follows at once; the first one's input has no gradient.
    assert products("") == 6 + 11
    assert products("layer2,layer3") == 6 + 11 + 2
    assert products("layer[0-2]") == 6 + 11 + 3


class Layer:
    def __call__(self, w: Any, x: Any) -> Any:
        return jax.nn.gelu(x @ w)


class Model:
    def __init__(self) -> None:
        self.layers = [Layer() for _ in range(3)]

    def __call__(self, weights: Any, x: Any) -> Any:
        x = self.layers[0](weights[0], x)
        x = self.layers[1](weights[1], x)
        return jnp.mean(self.layers[2](weights[2], x))


def test_layers_are_modules_too() -> None:
    weights = [jax.ShapeDtypeStruct((512, 512), jnp.float32)] * 3
    x = jax.ShapeDtypeStruct((2048, 512), jnp.float32)

    def products(layers: str) -> list[str]:
        options = {"ipu_recompute_layers": layers}
        report = ipu.report(jax.grad(Model()), weights, x, options=options)
        return [step.scope for step in report.steps if step.op == "dot_general"]

    extra = Counter(products("Model/layers[1]")) - Counter(products(""))
    assert extra == {"Model/layers[1]": 1}


def test_what_draws_or_calls_back_runs_once() -> None:
    calls: list[int] = []

    def layer(x: Any) -> Any:
        jax.debug.callback(lambda: calls.append(1))
        return jnp.sin(x) * x

    def loss(x: Any) -> Any:
        with jax.named_scope("a"):
            x = layer(x)
        with jax.named_scope("b"):
            return jnp.sum(jnp.sin(x) * x)

    x = jnp.ones((64, 64))
    wanted = jax.jit(jax.grad(loss))(x)
    found = jax.jit(jax.grad(loss), compiler_options={"ipu_recompute_layers": "*"})(x)
    jax.effects_barrier()
    np.testing.assert_array_equal(found, wanted)
    assert len(calls) == 2
