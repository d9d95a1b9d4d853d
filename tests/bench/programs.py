"""The programs that are timed: each function makes a warmed-up `RunMany` on a device."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.bench import source_tree
from tests.bench.timing import RunMany, timed


def repeat(function: Callable[..., Any], *inputs: jax.Array) -> RunMany:
    """Calls with the same inputs; waits for the last result only, as users' loops do."""
    jax.block_until_ready(function(*inputs))

    def run(num_calls: int) -> None:
        result = None
        for _ in range(num_calls):
            result = function(*inputs)
        jax.block_until_ready(result)

    return timed(run)


def add_one(device: jax.Device) -> RunMany:
    """x + 1 on four floats: the cost of a call."""
    return repeat(jax.jit(lambda x: x + 1), jax.device_put(np.ones(4, np.float32), device))


def add_one_to_numpy(device: jax.Device) -> RunMany:
    """The same, and its result as a NumPy array."""
    function = jax.jit(lambda x: x + 1)
    x = jax.device_put(np.ones(4, np.float32), device)
    np.asarray(function(x))

    def run(num_calls: int) -> None:
        for _ in range(num_calls):
            np.asarray(function(x))

    return timed(run)


def elementwise(device: jax.Device) -> RunMany:
    """A chain of cheap and dear elementwise ops on a million floats."""

    def chain(x: jax.Array) -> jax.Array:
        y = x * 1.5 + 0.25
        y = jnp.tanh(y) * jnp.exp(-y * y)
        y = jnp.where(y > 0, y, 0.1 * y)
        return y + jnp.sqrt(jnp.abs(x))

    x = np.random.default_rng(0).standard_normal(1_000_000).astype(np.float32)
    return repeat(jax.jit(chain), jax.device_put(x, device))


def cheap_elementwise(device: jax.Device) -> RunMany:
    """Thirty sums, products and maxima of a million floats: they should stay in registers."""

    def chain(x: jax.Array) -> jax.Array:
        for _ in range(5):
            x = x * 1.5 + 0.5
            x = jnp.maximum(x, 0.1) - x * x * 0.25
        return x

    x = np.random.default_rng(0).standard_normal(1_000_000).astype(np.float32)
    return repeat(jax.jit(chain), jax.device_put(x, device))


def matmul(device: jax.Device) -> RunMany:
    """1024 x 1024 float32."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((1024, 1024)).astype(np.float32) for _ in range(2))
    return repeat(jax.jit(jnp.matmul), jax.device_put(a, device), jax.device_put(b, device))


def stacking_scan(device: jax.Device, num_steps: int) -> RunMany:
    """A scan that stacks a vector of 32 floats for each step: caches hold it at every length."""

    def body(carry: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        carry = carry * 0.5 + x
        return carry, carry

    xs = jax.device_put(np.ones((num_steps, 32), np.float32), device)
    start = jax.device_put(np.zeros(32, np.float32), device)
    return repeat(jax.jit(lambda c, x: lax.scan(body, c, x)), start, xs)


_serial = itertools.count()


def compile_thousand_ops(device: jax.Device) -> RunMany:
    """Compiling, after tracing and lowering, programs of 1,000 ops not compiled before."""
    x = jax.device_put(np.ones(64, np.float32), device)

    def lowered() -> Any:
        serial = float(next(_serial))

        def program(y: jax.Array) -> jax.Array:
            y = y + serial
            for i in range(333):
                y = jnp.sin(y) * (1.0 + i) + 0.5
            return y

        return jax.jit(program).lower(x)

    def run(num_calls: int) -> float:
        programs = [lowered() for _ in range(num_calls)]
        start = time.perf_counter()
        for program in programs:
            program.compile()
        return time.perf_counter() - start

    run(1)
    return run


def _training(
    module: Any, state: Any, batch: tuple[np.ndarray, ...], device: jax.Device
) -> RunMany:
    """Steps that each take the state of the one before, donated."""
    placed = tuple(jax.device_put(array, device) for array in batch)
    held = [jax.device_put(state, device)]
    held[0], loss = module.train_step(held[0], *placed)
    jax.block_until_ready(loss)

    def run(num_calls: int) -> None:
        for _ in range(num_calls):
            held[0], loss = module.train_step(held[0], *placed)
        jax.block_until_ready((held[0], loss))

    return timed(run)


def _initial(module: Any, device: jax.Device, *arguments: Any) -> Any:
    with jax.default_device(device):
        params = module.init_params(jax.random.key(0), *arguments)
        return (params, module.optimizer.init(params))


def digits_mlp(device: jax.Device) -> RunMany:
    """The training step of examples/models/digits_mlp.py."""
    return _digits("digits_mlp", device)


def digits_cnn(device: jax.Device) -> RunMany:
    """The training step of examples/models/digits_cnn.py."""
    return _digits("digits_cnn", device)


def _digits(name: str, device: jax.Device) -> RunMany:
    module = source_tree.example(name)
    rng = np.random.default_rng(0)
    images = rng.random((module.BATCH_SIZE, 8, 8), np.float32)
    labels = rng.integers(0, 10, module.BATCH_SIZE).astype(np.int32)
    return _training(module, _initial(module, device), (images, labels), device)


def transformer(device: jax.Device) -> RunMany:
    """The training step of examples/models/transformer.py."""
    module = source_tree.example("transformer")
    tokens, num_letters = module.load_tokens()
    state = _initial(module, device, num_letters)
    return _training(module, state, (next(module.batches(tokens)),), device)
