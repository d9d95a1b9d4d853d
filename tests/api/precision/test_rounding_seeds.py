"""Stochastic rounding follows the seed: over runs, processes, replicas, stages, recomputation."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu

HALF = jnp.float16
X = np.linspace(1, 2, 2000, dtype=np.float16)
ROUNDED = {"ipu_stochastic_rounding": True}


def jitted(f, **options):
    return jax.jit(f, compiler_options=ROUNDED | {f"ipu_{k}": v for k, v in options.items()})


def seeded(f, *args, seed=1, **options):
    """What f gives in the first run after the seed was set."""
    ipu.reset_seed(seed, **options)
    return jax.tree.map(np.asarray, f(*args))


def same(a, b) -> bool:
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all((np.asarray(x) == np.asarray(y)).all() for x, y in leaves)


def rounded(f):
    def inside(*args):
        with ipu.precision(stochastic_rounding=True):
            return f(*args)

    return inside


def times(x):
    return x * HALF(1.1)


SOURCES = {
    "elementwise": times,
    "product": lambda x: x.reshape(40, 50) @ jnp.full((50, 3), 0.1, HALF),
    "cast": lambda x: (x.astype(jnp.float32) * 1.1).astype(HALF),
    "loop": lambda x: lax.fori_loop(0, 5, lambda i, c: times(c), x),
    "norm": lambda x: jax.nn.softmax(x.reshape(40, 50)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_runs_follow_the_seed(name):
    f = jitted(SOURCES[name])
    first = seeded(f, X)
    second = np.asarray(f(X))
    assert not same(first, second)
    assert not same(first, seeded(f, X, seed=2))
    assert same(first, seeded(f, X))
    assert same(second, f(X))
    assert same(first, seeded(jitted(SOURCES[name]), X))  # compiled again


def test_scopes_and_eager_operations_follow_the_seed():
    def both():
        with ipu.precision(stochastic_rounding=True):
            return np.asarray(times(jnp.asarray(X))), np.asarray(jax.jit(times)(X))

    first = seeded(both)
    assert not same(*first)
    assert same(first, seeded(both))


PROCESS = """
import jax, numpy as np, jax.numpy as jnp, ipujax as ipu, sys
x = np.linspace(1, 2, 2000, dtype=np.float16)
if sys.argv[1:]:
    ipu.reset_seed(int(sys.argv[1]))
f = jax.jit(lambda x: x * jnp.float16(1.1), compiler_options={"ipu_stochastic_rounding": True})
print(hash(bytes(f(x))), hash(bytes(f(x))))
"""


def in_process(*arguments: str, **environment: str) -> str:
    made = subprocess.run(
        [sys.executable, "-c", PROCESS, *arguments],
        env=os.environ | {"PYTHONHASHSEED": "0"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout


def test_processes_follow_the_seed():
    five = in_process("5")
    assert in_process(IPUJAX_SEED="5") == five
    assert in_process("6") != five


def test_iterations_and_elements_have_bits_of_their_own():
    def many(x):
        return lax.scan(lambda c, _: (c, x + HALF(2.0**-12)), 0, None, length=400)[1]

    rounded = np.asarray(seeded(jitted(many), np.ones(500, np.float16))) > 1
    for axis in (0, 1):  # a quarter goes up, in each iteration and of each element
        share = rounded.mean(axis)
        assert abs(share - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 400)
        assert np.unique(rounded, axis=axis).shape == rounded.shape
    still = jitted(lambda x: lax.fori_loop(0, 1000, lambda i, c: c + HALF(2.0**-13), x))
    grown = np.asarray(seeded(still, np.ones(100, np.float16)), np.float64)
    assert abs(grown.mean() - (1 + 1000 * 2.0**-13)) < 2e-3


# Recomputation ------------------------------------------------------------------------------------

W = np.random.default_rng(0).normal(size=(4, 32, 32)).astype(np.float16) / 6
V = np.random.default_rng(1).normal(size=(8, 32)).astype(np.float16)


def layer(x, w):
    return jnp.tanh(times(x @ w))


def chain(wrap):
    def loss(ws, x):
        for w in ws:
            x = wrap(layer)(x, w)
        return (x.astype(jnp.float32) ** 2).sum()

    return loss


def scanned(wrap):
    def loss(ws, x):
        y, _ = lax.scan(lambda c, w: (wrap(layer)(c, w), None), x, ws)
        return (y.astype(jnp.float32) ** 2).sum()

    return loss


def nested(wrap):
    def block(x, w):
        return lax.scan(lambda c, _: (layer(c, w), None), x, None, length=3)[0]

    def loss(ws, x):
        y, _ = lax.scan(lambda c, w: (wrap(block)(c, w), None), x, ws)
        return (y.astype(jnp.float32) ** 2).sum()

    return loss


def reversed_scan(wrap):
    def loss(ws, x):
        y, _ = lax.scan(lambda c, w: (wrap(layer)(c, w), None), x, ws, reverse=True)
        return (y.astype(jnp.float32) ** 2).sum()

    return loss


@pytest.mark.parametrize("program", [chain, scanned, nested, reversed_scan])
def test_checkpoints_round_as_the_forward_pass(program):
    plain = seeded(jitted(jax.value_and_grad(program(lambda f: f))), W, V)
    again = seeded(jitted(jax.value_and_grad(program(jax.checkpoint))), W, V)
    assert same(plain, again)
    other = seeded(jitted(jax.value_and_grad(program(jax.checkpoint))), W, V, seed=2)
    assert not same(plain, other)


@pytest.mark.parametrize("program", [chain, scanned])
def test_what_a_policy_saves_is_rounded_once(program):
    """JAX passes it through a reduce_precision to its own bits."""
    saving = partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    plain = seeded(jitted(jax.value_and_grad(program(lambda f: f))), W, V)
    assert same(plain, seeded(jitted(jax.value_and_grad(program(saving))), W, V))


@pytest.mark.parametrize("option", [{"allow_recompute": True}, {"recompute_layers": "layer*"}])
def test_the_compiler_recomputes_what_the_forward_pass_rounded(option):
    def loss(ws, x):
        for i, w in enumerate(ws):
            with jax.named_scope(f"layer{i}"):
                x = jnp.tanh(times(jnp.tanh(x @ w)))
        return (x.astype(jnp.float32) ** 2).sum()

    gradient = jax.value_and_grad(loss)
    assert same(seeded(jitted(gradient), W, V), seeded(jitted(gradient, **option), W, V))


@pytest.mark.parametrize("outline", ["off", "marked", "auto"])
def test_functions_of_equal_parts_round_apart(outline):
    block = ipu.outlined(lambda x: times(times(x)))
    f = jitted(lambda x: (block(x), block(x + HALF(0))), outline=outline, outline_threshold=0)
    first, second = seeded(f, X)
    assert same((first, second), seeded(f, X))
    assert not same(first, f(X)[0])
    wide = np.float64(X) * np.float64(np.float16(1.1)) ** 2
    assert abs(np.float64(first) - wide).max() < 8e-3
    del second


# Replicas -----------------------------------------------------------------------------------------


def test_replicas_have_bits_of_their_own_or_not():
    f = ipu.pmap(rounded(times))
    x = np.stack([X] * 2)
    own = seeded(f, x)
    assert not same(own[0], own[1])
    assert same(own, seeded(f, x))
    alike = seeded(f, x, identical_replicas=True)
    assert same(alike[0], alike[1])


def blocks(array):
    return [np.asarray(shard.data) for shard in array.addressable_shards]


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_what_devices_hold_alike_stays_alike(shape):
    """A step of data-parallel training: weights and summed gradients are on all devices."""
    axes = ("data", "model")[: len(shape)]
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(shape), axes)

    def put(x, *spec):
        return jax.device_put(x, NamedSharding(mesh, P(*spec)))

    def step(w, x):
        gradient = jax.grad(lambda w: (layer(x, w).astype(jnp.float32) ** 2).sum())(w)
        return w - HALF(1e-3) * gradient, times(x)

    w, x = put(W[0]), put(np.concatenate([V, V]), "data")
    ipu.reset_seed(3)
    for _ in range(3):
        w, y = jitted(step)(w, x)
    assert all((block == blocks(w)[0]).all() for block in blocks(w))
    halves = np.asarray(y)
    assert not same(halves[:8], halves[8:])  # equal rows, on other devices


def test_devices_recompute_what_the_forward_pass_rounded():
    """The gradient of w is the recomputed product. Reshapes of w[0] and x[0] move past one only."""
    mesh = Mesh(np.array(jax.devices()[:2]), ("data",))

    def product(w, x):
        y = jnp.sin(times(x))
        return y * w, y

    def loss(w, x):
        z, y = jax.checkpoint(product)(w, x)
        return z.astype(jnp.float32).sum(), y

    def step(w, x):
        gradient, y = jax.grad(loss, has_aux=True)(w[0], x[0])
        return gradient[None], y[None]

    x = np.stack([X, X])
    mapped = jax.shard_map(step, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    assert same(*jitted(mapped)(np.ones_like(x), x))


def test_loops_hold_only_what_devices_round_apart():
    mesh = Mesh(np.array(jax.devices()[:4]), ("data",))
    x = jax.device_put(np.concatenate([X] * 4), NamedSharding(mesh, P("data")))
    f = jitted(lambda x: lax.scan(lambda c, y: (times(c), c + y), x, jnp.stack([x] * 9)))
    parts = seeded(f, x)[0].reshape(4, -1)
    assert not same(parts[0], parts[1])


# Saved programs -----------------------------------------------------------------------------------


def test_saved_programs_take_a_seed(tmp_path):
    path = tmp_path / "rounded.ipu"
    saved = ipu.precompile(rounded(times), jax.ShapeDtypeStruct(X.shape, HALF))
    saved.save(path)
    with ipu.runtime.Session(path) as session:
        first, second = session.run(X), session.run(X)
        assert not same(first, second)
        session.reset_seed(0)
        assert same(first, session.run(X))
        session.reset_seed(9)
        ninth = session.run(X)
        assert not same(first, ninth)
        with pytest.raises(ipu.Error, match=r"from 0 to 2\*\*64 - 1; got -1"):
            session.reset_seed(-1)
    with ipu.runtime.Session(path) as session:
        assert same(first, session.run(X))
        assert same(second, session.run(X))
        session.reset_seed(9)
        assert same(ninth, session.run(X))
    loaded = ipu.load(path)
    assert same(seeded(loaded, X), seeded(loaded, X))
    assert not same(seeded(loaded, X), seeded(loaded, X, seed=2))
