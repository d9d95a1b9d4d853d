"""Small trainings over eight devices, in the ways in which JAX users shard them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu

_RNG = np.random.default_rng(5)
X = _RNG.standard_normal((32, 16)).astype(np.float32)
Y = _RNG.standard_normal((32, 8)).astype(np.float32)
W1 = (_RNG.standard_normal((16, 64)) * 0.2).astype(np.float32)
W2 = (_RNG.standard_normal((64, 8)) * 0.2).astype(np.float32)
STEPS = 3


def _mesh(*sizes: int) -> Mesh:
    return Mesh(np.array(jax.devices("ipu")).reshape(sizes), ("data", "model")[: len(sizes)])


def _loss(weights: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((jnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2)


def _trained(mesh: Mesh, specs: Any, batch: P, dtype: Any = jnp.float32) -> list[jax.Array]:
    """Adam by jit, with weights and batch sharded as told."""
    weights = [
        jax.device_put(np.asarray(w, dtype), NamedSharding(mesh, spec))
        for w, spec in zip((W1, W2), specs, strict=True)
    ]
    x, y = (jax.device_put(np.asarray(a, dtype), NamedSharding(mesh, batch)) for a in (X, Y))
    tx = optax.adam(0.01)

    @jax.jit
    def step(weights: Any, state: Any, x: jax.Array, y: jax.Array) -> Any:
        loss, gradients = jax.value_and_grad(_loss)(weights, x, y)
        updates, state = tx.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, loss

    state = jax.jit(tx.init)(weights)
    for _ in range(STEPS):
        weights, state, loss = step(weights, state, x, y)
    return [*weights, loss]


def data_parallel() -> list[jax.Array]:
    return _trained(_mesh(8), (P(), P()), P("data"))


def data_parallel_in_half() -> list[jax.Array]:
    return _trained(_mesh(8), (P(), P()), P("data"), jnp.float16)


def tensor_parallel() -> list[jax.Array]:
    return _trained(_mesh(1, 8), (P(None, "model"), P("model", None)), P())


def both() -> list[jax.Array]:
    return _trained(_mesh(4, 2), (P(None, "model"), P("model", None)), P("data"))


def fully_sharded() -> list[jax.Array]:
    return _trained(_mesh(8), (P(None, "data"), P("data", None)), P("data"))


def sharded_optimizer_state() -> list[jax.Array]:
    tx = ipu.optim.shard_state(optax.adam(0.01))
    weights = [W1, W2]
    state = ipu.pmap(tx.init, in_axes=None)(weights)

    @ipu.pmap(in_axes=(None, 0, 0, 0), out_axes=(None, 0))
    def step(weights: Any, state: Any, x: jax.Array, y: jax.Array) -> Any:
        updates, state = tx.update(jax.grad(_loss)(weights, x, y), state, weights)
        return optax.apply_updates(weights, updates), state

    for _ in range(STEPS):
        weights, state = step(weights, state, X.reshape(8, 4, 16), Y.reshape(8, 4, 8))
    return list(weights)


def scanned() -> list[jax.Array]:
    """All steps in one program, with a global condition around collectives."""
    mesh = _mesh(8)

    def body(state: Any, x: jax.Array, y: jax.Array) -> Any:
        step, weights, loss = state
        loss, gradients = jax.value_and_grad(_loss)(weights, x, y)
        gradients, loss = lax.pmean((gradients, loss), "data")
        weights = jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)
        return step + 1, weights, loss

    def run(weights: Any, x: jax.Array, y: jax.Array) -> Any:
        state = (0, weights, jnp.float32(10))
        return lax.while_loop(lambda s: (s[0] < 10) & (s[2] > 0.01), lambda s: body(s, x, y), state)

    f = jax.shard_map(
        run, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False
    )
    weights = [jax.device_put(w, NamedSharding(mesh, P())) for w in (W1, W2)]
    x, y = (jax.device_put(a, NamedSharding(mesh, P("data"))) for a in (X, Y))
    steps, weights, loss = jax.jit(f)(weights, x, y)
    return [steps, *weights, loss]


def random_numbers() -> list[jax.Array]:
    mesh = _mesh(8)

    def draw(key: jax.Array) -> jax.Array:
        own = jax.random.fold_in(key, lax.axis_index("data"))
        return lax.psum(jax.random.normal(own, (100,)), "data")[None]

    f = jax.shard_map(draw, mesh=mesh, in_specs=P(), out_specs=P("data"), check_vma=False)
    return [jax.jit(f)(jax.random.key(3))]


def pipelined() -> list[jax.Array]:
    """Stages over the two IPUs of a device, replicated over the devices."""

    def first(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w)

    def second(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.mean((x @ w) ** 2)

    loss = ipu.pipeline([first, second], micro_batches=4, reduction="mean")

    @ipu.pmap(in_axes=(None, 0), out_axes=None, axis_name="data")
    def step(weights: Any, x: jax.Array) -> Any:
        gradients = lax.pmean(jax.grad(loss)(weights, x), "data")
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

    weights = [W1, W2]
    for _ in range(STEPS):
        weights = step(weights, X.reshape(8, 4, 1, 16))
    return list(weights)


#: Each with eight devices of two IPUs.
TRAININGS: list[Callable[[], list[jax.Array]]] = [
    data_parallel,
    data_parallel_in_half,
    tensor_parallel,
    both,
    fully_sharded,
    sharded_optimizer_state,
    scanned,
    random_numbers,
    pipelined,
]
