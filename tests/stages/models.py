"""Models in stages, as users write them; each with the plain function that it must equal.

A row is a function of nothing that returns a `Model`; `MODELS` holds them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

import ipujax as ipu

MICRO_BATCHES = 6
SAMPLES = 4
WIDTH = 8


@dataclass(frozen=True)
class Model:
    """Stages, their parameters and a batch whose leaves have a leading axis of micro-batches."""

    stages: Any  #: or one function that calls them
    parameters: Any
    batch: Any
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def micro_batches(self) -> int:
        return int(jax.tree.leaves(self.batch)[0].shape[0])

    def plain(self, parameters: list[Any], micro_batch: Any) -> Any:
        value = micro_batch
        for stage, own in zip(self.stages, parameters, strict=True):
            value = stage(own, value)
        return value


#: Each stage runs two micro-batches before the next stage begins.
SERIALIZED = {"schedule": "sequential", "batch_serialization_iterations": 2}


def schedule_options(name: str) -> dict[str, Any]:
    """The options of a schedule, or of "serialized"; after "grouped remat" stages run again."""
    name, _, remat = name.partition(" ")
    options = SERIALIZED if name == "serialized" else {"schedule": name}
    return {**options, "remat": True} if remat else options


MODELS: dict[str, Callable[[], Model]] = {}


def model(make: Callable[[], Model]) -> Callable[[], Model]:
    MODELS[make.__name__] = make
    return make


def _random(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape) / 2, jnp.float32)


def _layer(weights: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ weights)


def _mean_square(weights: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.mean((x @ weights) ** 2)


def _inputs() -> jax.Array:
    return _random(0, MICRO_BATCHES, SAMPLES, WIDTH)


@model
def mlp() -> Model:
    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 5)]
    return Model([_layer, _layer, _layer, _mean_square], weights, _inputs())


@model
def one_stage() -> Model:
    return Model([_mean_square], [_random(1, WIDTH, WIDTH)], _inputs())


@model
def integer_inputs() -> Model:
    """An embedding, and labels that only the last stage reads."""

    def embed(table: jax.Array, given: Any) -> Any:
        tokens, labels = given
        return table[tokens], labels

    def middle(weights: jax.Array, given: Any) -> Any:
        x, labels = given
        return jnp.tanh(x @ weights), labels

    def head(weights: jax.Array, given: Any) -> jax.Array:
        x, labels = given
        logits = jax.nn.log_softmax(x @ weights)
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))

    random = np.random.default_rng(3)
    tokens, labels = (
        jnp.asarray(random.integers(0, 7, (MICRO_BATCHES, SAMPLES)), jnp.int32) for _ in range(2)
    )
    parameters = [_random(1, 7, WIDTH), _random(2, WIDTH, WIDTH), _random(3, WIDTH, 7)]
    return Model([embed, middle, head], parameters, (tokens, labels))


@model
def skips() -> Model:
    """A value of the first stage is read by the last."""

    def down(weights: jax.Array, x: jax.Array) -> Any:
        made = _layer(weights, x)
        return made, made

    def middle(weights: jax.Array, given: Any) -> Any:
        x, skipped = given
        return _layer(weights, x), skipped

    def up(weights: jax.Array, given: Any) -> jax.Array:
        x, skipped = given
        return jnp.mean((x @ weights + skipped) ** 2)

    return Model(
        [down, middle, middle, up], [_random(i, WIDTH, WIDTH) for i in range(1, 5)], _inputs()
    )


@model
def rematerialised() -> Model:
    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 4)]
    return Model([_layer, _layer, _mean_square], weights, _inputs(), {"remat": True})


@model
def mapped_to_fewer_ipus() -> Model:
    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 5)]
    options = {"device_mapping": [0, 1, 2, 0]}
    return Model([_layer, _layer, _layer, _mean_square], weights, _inputs(), options)


@model
def mapped_backwards() -> Model:
    options = {"device_mapping": [3, 1]}
    return Model(
        [_layer, _mean_square], [_random(i, WIDTH, WIDTH) for i in (1, 2)], _inputs(), options
    )


@model
def frozen_stage() -> Model:
    def frozen(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.stop_gradient(_layer(weights, x))

    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 4)]
    return Model([frozen, _layer, _mean_square], weights, _inputs())


@model
def scan_inside() -> Model:
    def layers(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda x, w: (_layer(w, x), None), x, weights)[0]

    weights = [_random(1, 9, WIDTH, WIDTH), _random(2, 10, WIDTH, WIDTH), _random(3, WIDTH, WIDTH)]
    return Model([layers, layers, _mean_square], weights, _inputs())


@model
def branches_inside() -> Model:
    def branch(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.cond(x.sum() > 0, lambda x: _layer(weights, x), lambda x: x * 2, x)

    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 4)]
    return Model([branch, branch, _mean_square], weights, _inputs())


@model
def custom_derivative() -> Model:
    @jax.custom_vjp
    def clipped(x: jax.Array) -> jax.Array:
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.01, 0.01),))

    def layer(weights: jax.Array, x: jax.Array) -> jax.Array:
        return clipped(_layer(weights, x))

    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 4)]
    return Model([layer, layer, _mean_square], weights, _inputs())


@model
def half_precision() -> Model:
    weights = [_random(i, WIDTH, WIDTH).astype(jnp.float16) for i in range(1, 4)]
    return Model([_layer, _layer, _mean_square], weights, _inputs().astype(jnp.float16))


@model
def dropout() -> Model:
    """Randomness from a key for each micro-batch, which travels with it."""

    def layer(weights: jax.Array, given: Any) -> Any:
        x, key = given
        key, own = jax.random.split(key)
        kept = jax.random.bernoulli(own, 0.8, x.shape)
        return jnp.where(kept, _layer(weights, x), 0), key

    def head(weights: jax.Array, given: Any) -> jax.Array:
        return _mean_square(weights, given[0])

    keys = jax.random.split(jax.random.PRNGKey(0), MICRO_BATCHES)
    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 4)]
    return Model([layer, layer, head], weights, (_inputs(), keys))


@model
def fewer_micro_batches_than_stages() -> Model:
    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 5)]
    return Model([_layer, _layer, _layer, _mean_square], weights, _inputs()[:2])


@model
def stages_at_once() -> Model:
    def join(weights: jax.Array, given: Any) -> jax.Array:
        return _mean_square(weights, sum(given))

    pair = [ipu.stage(_layer, ipu=1), ipu.stage(_layer, ipu=2)]
    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 5)]
    parameters = [weights[0], (weights[1], weights[2]), weights[3]]
    return _AtOnce([_layer, pair, ipu.stage(join, ipu=0)], parameters, _inputs())


class _AtOnce(Model):
    def plain(self, parameters: list[Any], micro_batch: Any) -> Any:
        first, (left, right), last = self.stages
        x = first(parameters[0], micro_batch)
        both = (left.fun(parameters[1][0], x), right.fun(parameters[1][1], x))
        return last.fun(parameters[2], both)


@model
def ordered_callbacks_inside() -> Model:
    """Effects whose order JAX promises keep the stages from overlapping."""

    def seen(weights: jax.Array, x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda x: None, x.sum(), ordered=True)
        return _layer(weights, x)

    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 4)]
    return Model([seen, seen, _mean_square], weights, _inputs())


@model
def callbacks_inside() -> Model:
    def seen(weights: jax.Array, x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda x: None, x.sum())
        return _layer(weights, x)

    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 4)]
    return Model([seen, seen, _mean_square], weights, _inputs())


@model
def while_inside() -> Model:
    """A loop whose turns depend on the data; no gradient goes through it."""

    def layer(weights: jax.Array, x: jax.Array) -> jax.Array:
        start = (jnp.max(jnp.abs(jax.lax.stop_gradient(x))), jnp.float32(1))
        halve = (lambda c: c[0] > 0.1, lambda c: (c[0] / 2, c[1] + 1))
        return _layer(weights, x) * jax.lax.while_loop(*halve, start)[1]

    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 4)]
    return Model([layer, layer, _mean_square], weights, _inputs())


@model
def checkpointed_scans() -> Model:
    """Uneven scans over layers, with a checkpoint, a policy, and a policy that offloads."""
    policies = jax.checkpoint_policies
    policy = policies.save_only_these_names("product")
    offloads = policies.offload_dot_with_no_batch_dims("device", "pinned_host")

    def layers(wrap: Any) -> Any:
        def one(x: jax.Array, w: jax.Array) -> Any:
            product = checkpoint_name(x @ w, "product")
            return jnp.tanh(product), None

        return lambda weights, x: jax.lax.scan(wrap(one), x, weights)[0]

    whole = layers(jax.checkpoint)
    named = layers(lambda f: jax.checkpoint(f, policy=policy))
    offloaded = layers(lambda f: jax.checkpoint(f, policy=offloads))
    weights = [_random(i, i + 1, WIDTH, WIDTH) for i in (2, 4, 1)] + [_random(3, WIDTH, WIDTH)]
    return Model([whole, named, offloaded, _mean_square], weights, _inputs())


@model
def mixture_of_experts() -> Model:
    """Each stage adds an auxiliary loss, which travels with x."""

    def experts(weights: Any, given: Any) -> Any:
        x, auxiliary = given if isinstance(given, tuple) else (given, 0.0)
        gates = jax.nn.softmax(x @ weights["gate"])
        chosen = jax.nn.one_hot(jnp.argmax(gates, -1), 3)
        made = jnp.einsum("sw,ewv,se->sv", x, weights["experts"], gates * chosen)
        return x + made, auxiliary + jnp.sum(gates.mean(0) * chosen.mean(0))

    def head(weights: jax.Array, given: Any) -> jax.Array:
        return _mean_square(weights, given[0]) + 0.01 * given[1]

    own = [{"gate": _random(i, WIDTH, 3), "experts": _random(i, 3, WIDTH, WIDTH)} for i in (1, 2)]
    return Model([experts, experts, head], [*own, _random(3, WIDTH, WIDTH)], _inputs())


@model
def eight_ipus() -> Model:
    weights = [_random(i, WIDTH, WIDTH) for i in range(1, 9)]
    return Model([*[_layer] * 7, _mean_square], weights, _inputs())


@model
def tied_weights() -> Model:
    return _tied((0, 1, 2))


@model
def tied_weights_on_one_ipu() -> Model:
    return _tied((0, 1, 0))


def _tied(ipus: tuple[int, ...]) -> Model:
    """An embedding that the head uses again."""

    def embed(table: jax.Array, tokens: jax.Array) -> jax.Array:
        return table[tokens]

    def head(table: jax.Array, x: jax.Array) -> jax.Array:
        return -jnp.mean(jax.nn.log_softmax(x @ table.T)[:, 0])

    class Tied(Model):
        def plain(self, parameters: Any, tokens: Any) -> Any:
            return head(parameters, _layer(jnp.eye(WIDTH), embed(parameters, tokens)))

    stages = [ipu.stage(f, ipu=i) for i, f in zip(ipus, (embed, _layer, head), strict=True)]

    def whole(table: jax.Array, tokens: jax.Array) -> Any:
        return stages[2](table, stages[1](jnp.eye(WIDTH), stages[0](table, tokens)))

    tokens = jnp.asarray(np.random.default_rng(3).integers(0, 7, (MICRO_BATCHES, SAMPLES)))
    return Tied(whole, _random(1, 7, WIDTH), tokens)
