"""Each optimizer of `ipu.optim` on replicas against plain optax on one device, whole batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, PartitionSpec

import ipujax as ipu

NUM_REPLICAS = 4
NUM_STEPS = 3
SIZES = (5, 7, 3)  # no number of elements is a multiple of the replicas


def init_params() -> dict:
    rng = np.random.default_rng(0)
    shapes = {"w0": SIZES[:2], "b0": SIZES[1:2], "w1": SIZES[1:], "b1": SIZES[2:]}
    return {k: rng.normal(size=s).astype(np.float32) for k, s in shapes.items()}


def data(num: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(num, SIZES[0])), rng.normal(size=(num, SIZES[2]))
    return x.astype(np.float32), y.astype(np.float32)


def loss_of(params, x, y):
    hidden = jnp.tanh(x @ params["w0"] + params["b0"])
    return jnp.mean((hidden @ params["w1"] + params["b1"] - y) ** 2)


def step_of(tx):
    def step(params, state, x, y):
        grads = jax.grad(loss_of)(params, x, y)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    return step


def plain(tx, batches):
    """Steps on one CPU device, each with a whole batch."""
    params = init_params()
    state = tx.init(params)
    step = jax.jit(step_of(tx))
    with jax.default_device(jax.devices("cpu")[0]):
        for x, y in batches:
            params, state = step(params, state, x, y)
    return params


def spread(tx, batches, devices, init_inside: bool = False):
    """The same on replicas, each with its part of the batch."""
    params = init_params()
    if init_inside:
        state = ipu.pmap(tx.init, in_axes=None, devices=devices)(params)
    else:
        state = jax.tree.map(lambda s: np.stack([s] * len(devices)), tx.init(params))
    params = jax.tree.map(lambda p: np.stack([p] * len(devices)), params)
    step = ipu.pmap(step_of(tx), devices=devices, donate_argnums=(0, 1))
    for x, y in batches:
        parts = [a.reshape(len(devices), -1, a.shape[-1]) for a in (x, y)]
        params, state = step(params, state, *parts)
    for leaf in jax.tree.leaves(params):
        assert all((leaf[i] == leaf[0]).all() for i in range(len(devices))), "replicas differ"
    return jax.tree.map(lambda p: np.asarray(p[0]), params), state, step


def close(got, want):
    for key in want:
        np.testing.assert_allclose(got[key], want[key], rtol=2e-4, atol=2e-5, err_msg=key)


def whole_batches(num: int = 16):
    return [data(num, seed) for seed in range(NUM_STEPS)]


OPTIMIZERS = {
    "sgd": optax.sgd(0.1, momentum=0.9),
    "adam": optax.adam(1e-2),
    "adamw": optax.adamw(1e-2, weight_decay=0.1),
    "schedule": optax.adam(optax.cosine_decay_schedule(1e-2, 10)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_cross_replica_mean(replicas, name):
    tx = OPTIMIZERS[name]
    got, _, _ = spread(ipu.optim.cross_replica(tx), whole_batches(), replicas(NUM_REPLICAS))
    close(got, plain(tx, whole_batches()))


class State(NamedTuple):
    params: Any
    opt_state: Any


def test_training_state_with_an_axis_of_replicas(replicas):
    """The step of a training loop as users write it: one pytree of state, donated."""
    tx = ipu.optim.cross_replica(optax.adam(1e-2))

    @ipu.pmap(axis_name="replica", donate_argnums=0, devices=replicas(NUM_REPLICAS))
    def step(state, batch):
        loss, grads = jax.value_and_grad(loss_of)(state.params, *batch)
        updates, opt_state = tx.update(grads, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        return state._replace(params=params, opt_state=opt_state), loss

    state = State(init_params(), tx.init(init_params()))
    state = jax.tree.map(lambda leaf: np.stack([leaf] * NUM_REPLICAS), state)
    for batch in whole_batches():
        parts = tuple(a.reshape(NUM_REPLICAS, -1, a.shape[-1]) for a in batch)
        before, (state, losses) = state, step(state, parts)
    assert losses.shape == (NUM_REPLICAS,)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before))
    close(jax.tree.map(lambda p: p[3], state.params), plain(optax.adam(1e-2), whole_batches()))


def test_cross_replica_sum(replicas):
    tx = optax.sgd(0.1)
    got, _, _ = spread(ipu.optim.cross_replica(tx, "sum"), whole_batches(), replicas(NUM_REPLICAS))
    close(got, plain(optax.sgd(0.1 * NUM_REPLICAS), whole_batches()))


def test_cross_replica_in_groups(replicas):
    """Two groups that train on their own halves."""
    devices = replicas(NUM_REPLICAS)
    tx = optax.adam(1e-2)
    wrapped = ipu.optim.cross_replica(tx, replica_group_size=2)
    x, y = data(16)
    step = ipu.pmap(step_of(wrapped), in_axes=(None, None, 0, 0), devices=devices)
    parts = [a.reshape(NUM_REPLICAS, -1, a.shape[-1]) for a in (x, y)]
    got, _ = step(init_params(), wrapped.init(init_params()), *parts)
    for half in range(2):
        want = plain(tx, [(x[half * 8 : half * 8 + 8], y[half * 8 : half * 8 + 8])])
        for member in range(2):
            close(jax.tree.map(lambda p, r=half * 2 + member: p[r], got), want)


def test_gradient_accumulation_on_one_device(replicas):
    tx = optax.adam(1e-2)
    wrapped = ipu.optim.gradient_accumulation(tx, 4)
    with jax.default_device(replicas(1)[0]):
        params, state = init_params(), wrapped.init(init_params())
        step = jax.jit(step_of(wrapped))
        for number, (x, y) in enumerate(whole_batches()):
            for i in range(4):
                before = params
                params, state = step(params, state, x[i * 4 : i * 4 + 4], y[i * 4 : i * 4 + 4])
                if i < 3:
                    assert all((params[k] == before[k]).all() for k in params)
            assert int(state.micro_step) == 0, number
    close(params, plain(tx, whole_batches()))


@pytest.mark.parametrize(("reduction", "scale"), [("mean", 1), ("running_mean", 1), ("sum", 4)])
def test_gradient_accumulation_reductions(reduction, scale):
    wrapped = ipu.optim.gradient_accumulation(optax.sgd(1.0), 4, reduction=reduction)
    params = {"w": jnp.zeros(3)}
    state = wrapped.init(params)
    grads = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    for i in range(4):
        updates, state = wrapped.update({"w": grads[i]}, state, params)
    np.testing.assert_allclose(updates["w"], -grads.mean(0) * scale, rtol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "want"),
    [
        (None, {"half": jnp.float16, "single": jnp.float32}),
        (jnp.float32, {"half": jnp.float32, "single": jnp.float32}),
        ("float16", {"half": jnp.float16, "single": jnp.float16}),
        (lambda p: jnp.float32 if p.ndim == 1 else p.dtype, {"half": jnp.float32}),
    ],
)
def test_accumulator_dtypes(dtype, want):
    params = {"half": jnp.zeros(2, jnp.float16), "single": jnp.zeros((2, 2), jnp.float32)}
    wrapped = ipu.optim.gradient_accumulation(optax.sgd(1.0), 64, dtype=dtype)
    state = wrapped.init(params)
    for name, wanted in want.items():
        assert state.accumulated[name].dtype == wanted
    update = jax.jit(wrapped.update)
    small = {"half": jnp.full(2, 1e-4, jnp.float16), "single": jnp.full((2, 2), 1e-4)}
    for _ in range(64):
        updates, state = update(small, state, params)
    assert updates["half"].dtype == state.accumulated["half"].dtype
    # 64 sums in float16 lose what float32 keeps.
    bound = 1e-3 if state.accumulated["half"].dtype == jnp.float32 else 1e-2
    np.testing.assert_allclose(updates["half"].astype(np.float32), -1e-4, rtol=bound)


@pytest.mark.parametrize("reduction", ["sum", "mean", "running_mean"])
@pytest.mark.parametrize(
    "inner",
    [
        optax.identity(),
        optax.sgd(1e-3, momentum=0.9),
        optax.adamw(1e-3),
        optax.lamb(1e-3),
        optax.chain(optax.clip_by_global_norm(1e-2), optax.rmsprop(1e-3)),
        ipu.optim.loss_scale(ipu.optim.adam(1e-3)),
    ],
    ids=["identity", "sgd", "adamw", "lamb", "clipped", "scaled"],
)
def test_the_optimizer_gets_the_accumulators_dtype(inner, reduction):
    """40000 twice is more than float16 holds; the state keeps its dtypes from update to update."""
    given = []

    def update(grads, state, params=None):
        given.append(grads.dtype)
        return inner.update(grads, state, params)

    spy = optax.GradientTransformation(inner.init, update)
    tx = ipu.optim.gradient_accumulation(spy, 2, jnp.float32, reduction)
    params, grads = jnp.ones(3, jnp.float16), jnp.full(3, 40000, jnp.float16)
    state = first = tx.init(params)
    step = jax.jit(tx.update)
    for _ in range(4):
        updates, state = step(grads, state, params)
    assert set(given) == {jnp.dtype(jnp.float32)}
    assert np.isfinite(updates.astype(np.float32)).all()
    assert optax.apply_updates(params, updates).dtype == jnp.float16
    assert [x.dtype for x in jax.tree.leaves(state)] == [x.dtype for x in jax.tree.leaves(first)]
    wide = params.astype(jnp.float32)
    whole = jnp.full(3, 80000 if reduction == "sum" else 40000, jnp.float32)
    _, kept = inner.update(whole, inner.init(wide), wide)
    want, _ = inner.update(whole, kept, wide)
    np.testing.assert_allclose(updates, want, rtol=2e-3)


def test_cross_replica_gradient_accumulation(replicas):
    """Four replicas with two micro-batches each are eight parts of the whole batch."""
    tx = optax.adam(1e-2)
    wrapped = ipu.optim.cross_replica_gradient_accumulation(tx, 2)
    halves = [(a[i], b[i]) for a, b in _in_two(whole_batches()) for i in range(2)]
    got, state, _ = spread(wrapped, halves, replicas(NUM_REPLICAS))
    assert (np.asarray(state.micro_step) == 0).all()
    close(got, plain(tx, whole_batches()))


def _in_two(batches):
    return [(x.reshape(2, 8, -1), y.reshape(2, 8, -1)) for x, y in batches]


@pytest.mark.parametrize("nesterov", [False, True])
def test_combined_accumulation_over_replicas(replicas, nesterov):
    """Gradients of each replica are added to its velocity, which become their mean."""
    arguments = (0.1, 0.9, 0.0, 0.01, nesterov)
    tx = ipu.optim.sgd(
        *arguments, combined_accumulation=True, num_micro_batches=2, axis_name="replica"
    )
    halves = [(a[i], b[i]) for a, b in _in_two(whole_batches()) for i in range(2)]
    got, _, _ = spread(tx, halves, replicas(NUM_REPLICAS))
    close(got, plain(ipu.optim.sgd(*arguments), whole_batches()))


@pytest.mark.parametrize("name", ["adam", "lamb"])
def test_norms_of_sharded_gradients_are_those_of_whole_ones(replicas, name):
    tx = getattr(ipu.optim, name)(1e-2, max_grad_norm=0.05, weight_decay=0.01)
    sharded = ipu.optim.shard_state(tx)
    got, _, _ = spread(sharded, whole_batches(), replicas(NUM_REPLICAS), init_inside=True)
    want = plain(tx, whole_batches())
    close(got, want)
    free = plain(getattr(ipu.optim, name)(1e-2, weight_decay=0.01), whole_batches())
    assert max(np.abs(free[key] - want[key]).max() for key in want) > 1e-4


def test_one_collective_for_each_update_not_for_each_micro_batch(replicas):
    """In a scan over micro-batches all collectives are in the branch that updates."""
    wrapped = ipu.optim.cross_replica_gradient_accumulation(optax.adam(1e-2), 8)

    def epoch(params, state, x, y):
        def body(carry, batch):
            return step_of(wrapped)(*carry, *batch), None

        return jax.lax.scan(body, (params, state), (x, y))[0]

    params = init_params()
    x, y = (np.stack([a.reshape(8, 2, -1)] * NUM_REPLICAS) for a in data(16))
    run = ipu.pmap(epoch, in_axes=(None, None, 0, 0), devices=replicas(NUM_REPLICAS))
    lowered = run.lower(params, wrapped.init(params), x, y)
    text = lowered.as_text()
    assert _depths(text, "stablehlo.all_reduce", "stablehlo.case") == [1] * len(params)
    # With the reduction outside, every iteration has it.
    outside = ipu.optim.cross_replica(ipu.optim.gradient_accumulation(optax.adam(1e-2), 8))

    def every_turn(params, state, x, y):
        return step_of(outside)(params, state, x, y)

    text = (
        ipu.pmap(every_turn, in_axes=(None, None, 0, 0), devices=replicas(NUM_REPLICAS))
        .lower(params, outside.init(params), x[:, 0], y[:, 0])
        .as_text()
    )
    assert _depths(text, "stablehlo.all_reduce", "stablehlo.case") == [0] * len(params)


def _depths(text: str, op: str, region: str) -> list[int]:
    """For each `op` of a module's text: inside how many `region` ops it stands, by indentation."""
    open_regions: list[int] = []
    found = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        while open_regions and indent <= open_regions[-1] and not line.lstrip().startswith("}"):
            open_regions.pop()
        if region in line:
            open_regions.append(indent)
        elif op in line:
            found.append(len(open_regions))
    return found


def test_map_gradient(replicas):
    decay = 0.1
    tx = ipu.optim.map_gradient(optax.sgd(0.1), lambda grad, param: grad + decay * param)
    want = plain(optax.chain(optax.add_decayed_weights(decay), optax.sgd(0.1)), whole_batches())
    got, _, _ = spread(ipu.optim.cross_replica(tx), whole_batches(), replicas(NUM_REPLICAS))
    close(got, want)
    with pytest.raises(ipu.ConfigError, match="needs parameters; got none"):
        tx.update(init_params(), tx.init(init_params()))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_shard_state(replicas, name):
    tx = OPTIMIZERS[name]
    got, _, _ = spread(
        ipu.optim.shard_state(tx), whole_batches(), replicas(NUM_REPLICAS), init_inside=True
    )
    close(got, plain(tx, whole_batches()))


def test_shard_state_takes_a_part_of_the_memory(replicas):
    devices = replicas(NUM_REPLICAS)
    params = {"w": np.ones((256, 256), np.float32)}
    moments = 2 * params["w"].nbytes

    def argument_bytes(tx, state):
        def update(grads, state, params):
            return tx.update(grads, state, params)[1]

        step = ipu.pmap(update, in_axes=(None, 0, None), devices=devices)
        memory = step.lower(params, state, params).compile().memory_analysis()
        return memory.argument_size_in_bytes

    sharded = ipu.optim.shard_state(optax.adam(1e-2))
    state = ipu.pmap(sharded.init, in_axes=None, devices=devices)(params)
    whole = ipu.optim.cross_replica(optax.adam(1e-2))
    copies = ipu.pmap(whole.init, in_axes=None, devices=devices)(params)
    saved = argument_bytes(whole, copies) - argument_bytes(sharded, state)
    assert saved == moments * (NUM_REPLICAS - 1) // NUM_REPLICAS
    for leaf in jax.tree.leaves(state.mu if hasattr(state, "mu") else state[0].mu):
        assert leaf.shape == (NUM_REPLICAS, 256 * 256 // NUM_REPLICAS)


def test_shard_state_moves_as_much_as_one_all_reduce(replicas):
    tx = ipu.optim.shard_state(optax.adam(1e-2))
    devices = replicas(NUM_REPLICAS)
    params = init_params()
    state = ipu.pmap(tx.init, in_axes=None, devices=devices)(params)
    step = ipu.pmap(lambda g, s, p: tx.update(g, s, p), in_axes=(None, 0, None), devices=devices)
    text = step.lower(params, state, params).as_text()
    assert text.count("stablehlo.reduce_scatter") == len(params)
    assert text.count("stablehlo.all_gather") == len(params)
    assert "stablehlo.all_reduce" not in text


def test_inside_of_a_checked_shard_map(replicas):
    """There JAX sums gradients of shared parameters itself; a second reduction is refused."""
    mesh = Mesh(np.array(replicas(NUM_REPLICAS)), ("replica",))
    spec = PartitionSpec
    tx = ipu.optim.cross_replica(optax.sgd(0.1))
    params, (x, y) = init_params(), data(16)

    def run(step, check):
        mapped = jax.shard_map(
            step,
            mesh=mesh,
            in_specs=(spec(), spec(), spec("replica"), spec("replica")),
            out_specs=spec(),
            check_vma=check,
        )
        return jax.jit(mapped)(params, tx.init(params), x, y)

    with pytest.raises(ipu.ReplicationError, match=r"gradients of each replica.*\['b0'\]"):
        run(step_of(tx), True)
    want = plain(optax.sgd(0.1), [(x, y)])
    close(run(step_of(tx), False)[0], want)

    def own_gradients(params, state, x, y):
        own = jax.lax.pcast(params, "replica", to="varying")
        updates, state = tx.update(jax.grad(loss_of)(own, x, y), state, params)
        return optax.apply_updates(params, updates), state

    close(run(own_gradients, True)[0], want)


def test_sharded_state_inside_of_a_checked_shard_map(replicas):
    mesh = Mesh(np.array(replicas(NUM_REPLICAS)), ("replica",))
    spec = PartitionSpec
    tx = ipu.optim.shard_state(optax.adam(1e-2))
    params, (x, y) = init_params(), data(16)

    def step(params, x, y):
        own = jax.lax.pcast(params, "replica", to="varying")
        updates, _ = tx.update(jax.grad(loss_of)(own, x, y), tx.init(params), params)
        return optax.apply_updates(params, updates)

    mapped = jax.shard_map(
        step, mesh=mesh, in_specs=(spec(), spec("replica"), spec("replica")), out_specs=spec()
    )
    close(jax.jit(mapped)(params, x, y), plain(optax.adam(1e-2), [(x, y)]))


def test_accumulation_inside_of_a_checked_shard_map(replicas):
    mesh = Mesh(np.array(replicas(NUM_REPLICAS)), ("replica",))
    spec = PartitionSpec
    tx = ipu.optim.gradient_accumulation(optax.sgd(1.0), 2)
    grads = np.arange(8.0, dtype=np.float32)

    def run(grads):
        state = tx.init(grads)
        first, state = tx.update(grads, state, grads)
        second, _ = tx.update(3 * grads, state, grads)
        return first, second

    along = spec("replica")
    mapped = jax.shard_map(run, mesh=mesh, in_specs=along, out_specs=along)
    first, second = jax.jit(mapped)(grads)
    np.testing.assert_array_equal(first, 0 * grads)
    np.testing.assert_array_equal(second, -2 * grads)


WRONG = [
    (lambda: ipu.optim.cross_replica(0.1), "needs an optax.GradientTransformation; got 0.1"),
    (
        lambda: ipu.optim.cross_replica(optax.sgd(1), "max"),
        "be one of mean, sum; got 'max'",
    ),
    (lambda: ipu.optim.gradient_accumulation(optax.sgd(1), 0), "at least 1; got 0"),
    (lambda: ipu.optim.gradient_accumulation(optax.sgd(1), 2, reduction="x"), "running_mean; got"),
    (
        lambda: ipu.optim.shard_state(optax.sgd(1), "min"),
        "be one of mean, sum; got 'min'",
    ),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_bad_options(make, message):
    with pytest.raises(ipu.ConfigError, match=message):
        make()


@pytest.mark.parametrize("make", [ipu.optim.cross_replica, ipu.optim.shard_state])
def test_outside_of_replicas(make):
    tx = make(optax.sgd(0.1))
    with pytest.raises(ipu.ReplicationError, match=r"\[ipu.optim.*needs a mapped axis; got none"):
        tx.update(init_params(), optax.sgd(0.1).init(init_params()))


def test_optax_is_imported_where_an_optimizer_is_made(run_python):
    run = run_python("-c", "import sys, ipujax; print('optax' in sys.modules)")
    assert run.stdout.strip() == "False"
