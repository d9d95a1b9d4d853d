"""Compiled steps that look up and update a table on the host, against a NumPy table."""

from __future__ import annotations

import contextlib
import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu
from ipujax.errors import ConfigError, ReplicationError

RATE, ROWS, COLUMNS = 0.1, 40, 8
START = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).normal(size=(COLUMNS, 3)).astype(np.float32)
IDS = np.random.default_rng(2).integers(0, ROWS, (4, 6)).astype(np.int32)
IDS[0, :3] = IDS[1, 0] = 7


def new_table(**options: Any) -> ipu.HostEmbedding:
    options = {"optimizer": ipu.HostEmbeddingSGD(RATE)} | options
    return ipu.HostEmbedding(START.copy(), **options)


def loss_of_rows(rows: jax.Array, weights: Any = WEIGHTS) -> jax.Array:
    return jnp.sum(jnp.tanh(rows @ weights) ** 2)


def trained(rows: np.ndarray, ids: np.ndarray, rate: float = RATE) -> np.ndarray:
    """The table after one step: the gradient by formula, the update by a loop."""
    t = np.tanh(rows[ids].astype(np.float64) @ WEIGHTS)
    gradients = (2 * t * (1 - t**2)) @ WEIGHTS.T.astype(np.float64)
    new = rows.astype(np.float64)
    for index, gradient in zip(ids.ravel(), gradients.reshape(-1, COLUMNS), strict=True):
        new[index] -= rate * gradient
    return new


def step_of(table: ipu.HostEmbedding, **options: Any) -> Any:
    def step(token: jax.Array, ids: jax.Array) -> tuple[jax.Array, jax.Array]:
        def loss_of(token: jax.Array) -> jax.Array:
            return loss_of_rows(table.lookup(token, ids, **options))

        loss, raised = jax.value_and_grad(loss_of)(token)
        return token + raised, loss

    return step


def check(table: ipu.HostEmbedding, token: Any, wanted: np.ndarray, rtol: float = 2e-6) -> None:
    np.testing.assert_allclose(table.read(token).astype(np.float64), wanted, rtol, rtol)


@pytest.fixture(params=["ipu", "cpu"])
def platform(request):
    with jax.default_device(jax.devices(request.param)[0]):
        yield request.param


# Steps -------------------------------------------------------------------------------------------


def test_steps_train_the_table(platform) -> None:
    table, wanted = new_table(), START.astype(np.float64)
    step, token = jax.jit(step_of(table)), table.token()
    for ids in IDS:
        loss = loss_of_rows(wanted[ids].astype(np.float32))
        token, found = step(token, ids)
        np.testing.assert_allclose(found, loss, 1e-5)
        wanted = trained(wanted, ids)
    check(table, token, wanted)
    assert step._cache_size() == 1


def test_without_a_compiled_step() -> None:
    table = new_table()
    token, _ = step_of(table)(table.token(), IDS[0])
    check(table, token, trained(START, IDS[0]))


def test_a_scan_of_steps(platform) -> None:
    table, wanted = new_table(), START
    token, _ = jax.jit(lambda t: jax.lax.scan(step_of(table), t, IDS))(table.token())
    for ids in IDS:
        wanted = trained(wanted, ids)
    check(table, token, wanted)


@pytest.mark.parametrize(
    ("dtype", "rtol"), [(np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2), (np.float32, 2e-6)]
)
def test_dtypes(dtype, rtol) -> None:
    table = ipu.HostEmbedding(START.astype(dtype), ipu.HostEmbeddingSGD(RATE))
    assert jax.eval_shape(table.lookup, table.token(), IDS).dtype == dtype
    found = jax.jit(table.lookup)(table.token(), IDS)
    np.testing.assert_array_equal(found, START.astype(dtype)[IDS])
    token, _ = jax.jit(step_of(table))(table.token(), IDS[0])
    check(table, token, trained(START.astype(dtype).astype(np.float32), IDS[0]), rtol)


def test_several_arrays_are_one_lookup() -> None:
    table = new_table()
    ids = {"user": IDS[0, 0], "items": IDS[1:3]}
    rows = jax.jit(table.lookup)(table.token(), ids)
    jax.tree.map(np.testing.assert_array_equal, rows, jax.tree.map(lambda i: START[i], ids))
    token = table.update(table.token(), ids, jax.tree.map(jnp.ones_like, rows))
    wanted = START.astype(np.float64)
    for index in [int(ids["user"]), *ids["items"].ravel()]:
        wanted[index] -= RATE
    check(table, token, wanted)
    assert float(token) == 1


def test_several_lookups_of_a_step_see_one_version() -> None:
    """A loss that is linear in the rows: the backward pass needs none of them."""
    table = new_table()

    @jax.jit
    def step(token: jax.Array) -> Any:
        def loss_of(token: jax.Array) -> Any:
            first, second = table.lookup(token, IDS[0]), table.lookup(token, IDS[1])
            return jnp.sum(first) + 2 * jnp.sum(second), (first, second)

        raised, rows = jax.grad(loss_of, has_aux=True)(token)
        return token + raised, rows, table.lookup(token + raised, IDS[0])

    token, (first, second), after = step(table.token())
    np.testing.assert_array_equal(first, START[IDS[0]])
    np.testing.assert_array_equal(second, START[IDS[1]])
    wanted = START.astype(np.float64)
    for ids, gradient in ((IDS[0], 1), (IDS[1], 2)):
        for index in ids:
            wanted[index] -= RATE * gradient
    np.testing.assert_allclose(after, wanted[IDS[0]], 2e-6, 2e-6)
    check(table, token, wanted)


def test_gradients_of_rows_taken_by_hand_with_a_learning_rate(platform) -> None:
    table = new_table()

    @jax.jit
    def step(token: jax.Array, ids: jax.Array, rate: jax.Array) -> jax.Array:
        rows = table.lookup(token, ids)
        return table.update(token, ids, jax.grad(loss_of_rows)(rows), learning_rate=rate)

    token = step(table.token(), IDS[0], 0.5)
    token = step(token, IDS[1], 0.01)
    assert step._cache_size() == 1
    check(table, token, trained(trained(START, IDS[0], 0.5), IDS[1], 0.01))


def test_a_learning_rate_of_a_lookup() -> None:
    table = new_table()
    step = jax.jit(lambda t, i, r: step_of(table, learning_rate=r)(t, i))
    token, _ = step(table.token(), IDS[0], 0.5)
    check(table, token, trained(START, IDS[0], 0.5))


def test_accumulation() -> None:
    table = new_table(optimizer=ipu.HostEmbeddingSGD(RATE, accumulation_factor=2))
    step = jax.jit(step_of(table))
    token, _ = step(table.token(), IDS[0])
    check(table, token, START)
    token, _ = step(token, IDS[1])
    check(table, token, trained(START, IDS[0]) + trained(START, IDS[1]) - START)


def test_a_table_that_is_not_trained() -> None:
    table = new_table(optimizer=None)
    token, _ = jax.jit(step_of(table))(table.token(), IDS[0])
    assert float(token) == 0
    check(table, token, START)


# Transformations ---------------------------------------------------------------------------------


def test_examples_of_vmap_are_one_lookup_and_one_update() -> None:
    table = new_table()

    def loss_of(token: jax.Array) -> jax.Array:
        return jnp.sum(jax.vmap(lambda ids: loss_of_rows(table.lookup(token, ids)))(IDS))

    raised = jax.jit(jax.grad(loss_of))(table.token())
    assert float(raised) == 1
    check(table, raised, trained(START, IDS))


def test_gradients_of_examples_of_vmap() -> None:
    table = new_table()
    step = jax.vmap(step_of(table), in_axes=(None, 0), out_axes=(None, 0))
    token, _ = jax.jit(step)(table.token(), IDS)
    check(table, token, trained(START, IDS))


def test_examples_that_share_indices() -> None:
    table = new_table()

    def loss_of(token: jax.Array) -> jax.Array:
        each = jax.vmap(lambda scale: loss_of_rows(table.lookup(token, IDS[0])) * scale)
        return jnp.sum(each(jnp.arange(3.0)))

    token = jax.jit(jax.grad(loss_of))(table.token())
    check(table, token, START + 3 * (trained(START, IDS[0]) - START))


@pytest.mark.parametrize("wrap", [jax.checkpoint, ipu.remat])
def test_recomputed_lookups(wrap) -> None:
    table = new_table()
    loss_of = wrap(lambda token, ids: loss_of_rows(jnp.sin(table.lookup(token, ids))))
    plain = new_table()
    found = jax.jit(jax.grad(loss_of))(table.token(), IDS[0])
    wanted = jax.jit(jax.grad(lambda token, ids: loss_of_rows(jnp.sin(plain.lookup(token, ids)))))(
        plain.token(), IDS[0]
    )
    check(table, found, plain.read(wanted))


def test_a_branch_and_a_loop_around_lookups() -> None:
    table = new_table()

    def loss_of(token: jax.Array, is_used: jax.Array) -> jax.Array:
        def one(total: jax.Array, ids: jax.Array) -> tuple[jax.Array, None]:
            used = jax.lax.cond(
                is_used, lambda: loss_of_rows(table.lookup(token, ids)), lambda: jnp.float32(0)
            )
            return total + used, None

        return jax.lax.scan(one, jnp.float32(0), IDS)[0]

    step = jax.jit(jax.grad(loss_of))
    assert float(step(table.token(), False)) == 0
    raised = step(table.token(), True)
    assert float(raised) == len(IDS)
    check(table, raised, trained(START, IDS))


def test_derivatives_that_do_not_exist() -> None:
    table = new_table()
    with pytest.raises(ConfigError, match=r"update\] needs arguments that are not differentiated"):
        jax.grad(lambda g: table.update(table.token(), IDS, g))(START[IDS])
    with pytest.raises(ConfigError, match=r"lookup\] needs one token for all examples"):
        jax.vmap(lambda token: table.lookup(token, IDS))(jnp.zeros(3))


@pytest.mark.parametrize("schedule", ["grouped", "interleaved", "sequential"])
@pytest.mark.parametrize("remat", [None, True])
def test_stages_of_a_pipeline(schedule, remat) -> None:
    """Lookups of all micro-batches see one version, and their gradients are one update."""
    table = new_table()
    stages = [lambda token, ids: table.lookup(token, ids), lambda w, rows: loss_of_rows(rows, w)]
    loss_of = ipu.pipeline(
        stages,
        micro_batches=4,
        reduction="sum",
        schedule=schedule,
        device_mapping=[0, 0],
        remat=remat,
    )
    raised, gradient = jax.jit(jax.grad(loss_of))([table.token(), WEIGHTS], IDS)
    assert float(raised) == 4
    check(table, raised, trained(START, IDS))
    wanted = jax.grad(loss_of_rows, 1)(START[IDS], WEIGHTS)
    np.testing.assert_allclose(gradient, wanted, 1e-5, 1e-5)


# Replicas ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [None, "token", "encoding"])
@pytest.mark.parametrize("kind", ["shard_map", "pmap", "vmap"])
def test_replicas(replicas, strategy, kind) -> None:
    devices = replicas(4)
    table = new_table(partition_strategy=strategy)

    def one(token: jax.Array, ids: jax.Array) -> tuple[jax.Array, jax.Array]:
        token, _ = step_of(table, axis_name="r")(token, ids)
        return token, table.lookup(token, ids, axis_name="r")

    with jax.default_device(devices[0]):
        if kind == "shard_map":
            mesh = Mesh(np.array(devices), ("r",))
            specs = {"in_specs": (P(), P("r")), "out_specs": (P(), P("r"))}
            step = jax.jit(jax.shard_map(one, mesh=mesh, **specs))
            token, rows = step(table.token(), IDS.reshape(-1))
        else:
            mapped = {"axis_name": "r", "in_axes": (None, 0), "out_axes": (None, 0)}
            over = (
                jax.jit(jax.vmap(one, **mapped))
                if kind == "vmap"
                else jax.pmap(one, devices=devices, **mapped)
            )
            token, rows = over(table.token(), IDS)
    assert float(token) == 4
    wanted = trained(START, IDS)
    np.testing.assert_allclose(np.reshape(rows, (*IDS.shape, COLUMNS)), wanted[IDS], 2e-6, 2e-6)
    check(table, token, wanted)


def test_a_batch_that_jax_distributes(replicas) -> None:
    mesh = Mesh(np.array(replicas(4)), ("r",))
    table = new_table()
    ids = jax.device_put(IDS.reshape(-1), NamedSharding(mesh, P("r")))
    token = jax.device_put(table.token(), NamedSharding(mesh, P()))
    token, _ = jax.jit(step_of(table))(token, ids)
    check(table, token, trained(START, IDS))


def test_columns_that_replicas_do_not_divide(replicas) -> None:
    table = new_table(partition_strategy="encoding")
    step = jax.pmap(
        lambda ids: table.lookup(0.0, ids, axis_name="r"), axis_name="r", devices=replicas(3)
    )
    with pytest.raises(ReplicationError, match=r"divide the 8 columns .* got 3 replicas"):
        step(IDS[:3])


# Failures ----------------------------------------------------------------------------------------


def fails(call: Any, *arguments: Any) -> str:
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(call(*arguments))
    with contextlib.suppress(jax.errors.JaxRuntimeError):  # of the update's effect
        jax.effects_barrier()
    return str(caught.value)


def test_an_old_token_is_an_error(platform) -> None:
    table = new_table()
    step = jax.jit(step_of(table))
    old = table.token()
    token, _ = step(old, IDS[0])
    token, _ = step(token, IDS[1])
    assert "HostEmbedding.lookup] needs the token 1 or 2" in fails(step, old, IDS[0])
    check(table, token, trained(trained(START, IDS[0]), IDS[1]))


def test_indices_are_clipped(platform) -> None:
    table = new_table()
    ids = np.array([-3, 0, 39, 99], np.int32)
    token, _ = jax.jit(step_of(table))(table.token(), ids)
    check(table, token, trained(START, np.clip(ids, 0, 39)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32, np.int64, np.uint64])
def test_dtypes_of_indices(dtype) -> None:
    table, ends = new_table(), np.iinfo(dtype)
    with jax.enable_x64(True):
        ids = jnp.array([ends.min, 3, ends.max], dtype)
        rows = jax.jit(table.lookup)(jnp.float32(0), ids)
    np.testing.assert_array_equal(rows, START[[0, 3, 39]])


def test_jax_does_not_keep_a_table_alive() -> None:
    table = new_table()
    reference = weakref.ref(table)
    look_up = jax.jit(lambda token, ids: reference().lookup(token, ids))
    look_up(table.token(), IDS[0])
    memory = weakref.ref(table._table)
    compiled = look_up.lower(table.token(), IDS[0]).compile()
    del table
    gc.collect()
    assert memory() is None
    assert "got one that was deleted" in fails(compiled, jnp.float32(0), IDS[0])


# Reading ahead -----------------------------------------------------------------------------------


def test_lookups_ahead_in_steps_change_nothing(platform) -> None:
    table, wanted = new_table(), START

    @jax.jit
    def step(token: jax.Array, ids: jax.Array, following: jax.Array) -> Any:
        table.lookup_ahead(following)
        return step_of(table)(token, ids)

    table.lookup_ahead(IDS[0])
    token = table.token()
    for number, ids in enumerate(IDS):
        token, loss = step(token, ids, IDS[(number + 1) % len(IDS)])
        np.testing.assert_allclose(loss, loss_of_rows(wanted[ids].astype(np.float32)), 1e-5)
        wanted = trained(wanted, ids)
    check(table, token, wanted)
    assert table._table.ahead.num_used >= 3


@pytest.mark.parametrize("strategy", [None, "token", "encoding"])
def test_replicas_read_ahead(strategy) -> None:
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("r",))
    table, wanted = new_table(partition_strategy=strategy), START

    def one(token: jax.Array, ids: jax.Array, following: jax.Array) -> jax.Array:
        table.lookup_ahead(following, axis_name="r")
        return step_of(table, axis_name="r")(token, ids)[0]

    specs = {"in_specs": (P(), P("r"), P("r")), "out_specs": P()}
    step = jax.jit(jax.shard_map(one, mesh=mesh, **specs))
    token = table.token()
    for shift in range(3):
        ids = np.roll(IDS, shift)
        token = step(token, ids.ravel(), np.roll(IDS, shift + 1).ravel())
        wanted = trained(wanted, ids)
    check(table, token, wanted)
    assert table._table.ahead.num_used == 8


# Arguments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: ipu.HostEmbedding(np.zeros(3, np.float32)), r"got float32 \[3\]"),
        (lambda t: ipu.HostEmbedding(np.zeros((0, 3), np.float32)), r"got float32 \[0, 3\]"),
        (lambda t: ipu.HostEmbedding(np.zeros((3, 3))), r"got float64 \[3, 3\]"),
        (
            lambda t: ipu.HostEmbedding.create((2**31, 1)),
            r"2\*\*31 - 1 rows; got .* \[2147483648, 1\]",
        ),
        (lambda t: ipu.HostEmbedding(START, "sgd"), "HostEmbeddingSGD or None .* got str"),
        (lambda t: ipu.HostEmbedding(START, partition_strategy="rows"), "got 'rows'"),
        (lambda t: ipu.HostEmbedding.create((3, -1)), r"\[3, -1\]"),
        (lambda t: ipu.HostEmbeddingSGD(-1), "at least 0; got -1"),
        (lambda t: ipu.HostEmbeddingSGD(float("nan")), "got nan"),
        (lambda t: ipu.HostEmbeddingSGD("x"), "got 'x'"),
        (lambda t: ipu.HostEmbeddingSGD(0.1, 0), "accumulation_factor of at least 1; got 0"),
        (lambda t: ipu.HostEmbeddingSGD(0.1, True), "got True"),
        (lambda t: t.lookup(0, IDS), r"token float32 \[\]; got int32 \[\]"),
        (lambda t: t.lookup(jnp.zeros(2), IDS), r"got float32 \[2\]"),
        (lambda t: t.lookup(0.0, START), "integer dtype; got float32"),
        (lambda t: t.lookup(0.0, []), "needs indices; got none"),
        (lambda t: t.update(0.0, IDS, START), r"shapes \[\(4, 6, 8\)\]; got \[\(40, 8\)\]"),
        (lambda t: t.update(0.0, IDS, [START, START]), r"shapes .* got \[\(40, 8\), \(40, 8\)\]"),
        (lambda t: t.lookup_ahead(START), r"lookup_ahead\] needs indices of an integer"),
        (lambda t: new_table(optimizer=None).update(0.0, IDS, START[IDS]), "with an optimizer"),
        (lambda t: new_table(optimizer=None).lookup(0.0, IDS, learning_rate=1), "an optimizer"),
    ],
)
def test_wrong_arguments(call, message) -> None:
    with pytest.raises(ConfigError, match=message):
        call(new_table())
