"""Functions whose users say how they run on blocks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from ipujax import jax_compat
from ipujax.errors import CallbackError

X = np.arange(32, dtype=np.float32).reshape(8, 4)


@custom_partitioning
def row_sums(x):
    return jnp.cumsum(x, axis=1), x.sum(axis=1)


def _partition(mesh, arguments, results):
    rows = NamedSharding(mesh, P(arguments[0].sharding.spec[0]))
    shardings = (NamedSharding(mesh, P(*rows.spec, None)), rows)
    return mesh, row_sums.fun, shardings, shardings[:1]


row_sums.def_partition(
    partition=_partition,
    infer_sharding_from_operands=lambda mesh, arguments, results: None,
    sharding_rule="i j -> i j, i",
)


@pytest.mark.parametrize("spec", [P("x"), P(None, "x"), P()], ids=str)
@pytest.mark.parametrize("num_devices", [1, 4])
def test_custom_partitioning(spec: P, num_devices: int):
    mesh = Mesh(np.array(jax.devices("ipu")[:num_devices]), ("x",))
    x = jax.device_put(X, NamedSharding(mesh, spec))
    scanned, total = jax.jit(lambda a: row_sums(a * 2))(x)
    np.testing.assert_array_equal(scanned, np.cumsum(X * 2, axis=1))
    np.testing.assert_array_equal(total, X.sum(axis=1) * 2)
    assert scanned.sharding.device_set == set(mesh.devices.flat)


@pytest.fixture
def grid() -> Mesh:
    return Mesh(np.array(jax.devices("ipu")[:8]).reshape(4, 2), ("x", "y"))


def put(array: Any, mesh: Mesh, *spec: Any) -> Any:
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def test_the_users_program_runs_on_each_device(grid: Mesh):
    """It multiplies blocks, adds them up itself, and calls a jitted function."""
    seen: list[Any] = []

    @custom_partitioning
    def product(a: Any, b: Any) -> Any:
        return a @ b, (a @ b) ** 2

    def partition(mesh: Mesh, arguments: Any, results: Any) -> Any:
        seen.append([each.sharding.spec for each in arguments])
        square = jax.jit(lambda c: c * c)

        def on_one(a: Any, b: Any) -> Any:
            c = lax.psum(a @ b, "y")
            return c + 0 * lax.axis_index("x"), square(c)

        rows = NamedSharding(mesh, P("x", None))
        needed = NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P("y", None))
        return mesh, on_one, (rows, rows), needed

    product.def_partition(partition, sharding_rule="i j, j k -> i k, i k")
    a, b = put(X, grid, "x", "y"), put(X.T[:, :6], grid, "y")
    result, squared = jax.jit(lambda a, b: product(a * 2, b))(a, b)
    np.testing.assert_array_equal(result, 2 * X @ X.T[:, :6])
    np.testing.assert_array_equal(squared, (2 * X @ X.T[:, :6]) ** 2)
    assert seen == [[P("x", "y"), P("y", None)]]


def test_operands_and_results_are_resharded_as_the_user_asks(grid: Mesh):
    @custom_partitioning
    def same(x: Any) -> Any:
        return x

    def partition(mesh: Mesh, arguments: Any, results: Any) -> Any:
        columns = NamedSharding(mesh, P(None, ("y", "x")))
        return mesh, lambda x: x, columns, (columns,)

    same.def_partition(partition, sharding_rule="i j -> i j")
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    out = jax.jit(lambda x: same(x) + x, out_shardings=NamedSharding(grid, P("x")))(
        put(x, grid, "x")
    )
    np.testing.assert_array_equal(out, 2 * x)
    assert out.sharding.spec == P("x")


def test_dimensions_that_do_not_divide_are_whole(grid: Mesh):
    seen: list[Any] = []

    @custom_partitioning
    def same(x: Any) -> Any:
        return x

    def partition(mesh: Mesh, arguments: Any, results: Any) -> Any:
        seen.append(arguments[0].sharding.spec)
        return mesh, lambda x: x, arguments[0].sharding, (arguments[0].sharding,)

    same.def_partition(partition, sharding_rule="i j -> i j")
    rows = NamedSharding(grid, P("x"))
    out = jax.jit(lambda x: same(lax.with_sharding_constraint(x[:6], rows)))(put(X, grid, "x"))
    np.testing.assert_array_equal(out, X[:6])
    assert seen == [P(None, None)]


def test_a_loop_with_a_collective(grid: Mesh):
    @custom_partitioning
    def total(x: Any) -> Any:
        return x.sum()

    def partition(mesh: Mesh, arguments: Any, result: Any) -> Any:
        def on_one(x: Any) -> Any:
            return lax.scan(lambda c, row: (c + lax.psum(row.sum(), "x"), None), 0.0, x)[0]

        columns = NamedSharding(mesh, P(None, "x"))
        return mesh, on_one, NamedSharding(mesh, P()), (columns,)

    total.def_partition(partition, sharding_rule="i j ->")
    assert jax.jit(total)(put(X, grid, None, "x")) == X.sum()


@pytest.mark.parametrize(
    "function",
    [
        jax.scipy.special.erfc,
        lax.bessel_i1e,
        lambda x: lax.approx_max_k(x, 2)[0],
        lambda x: lax.scan(lambda c, row: (c + lax.erf(row), c), x[0], x)[1],
        lambda x: lax.top_k(x, 2)[0],
        lambda x: jax.pure_callback(np.cos, x, x, vmap_method="expand_dims"),
    ],
    ids=["a composite", "decomposed", "a comparator", "in a loop", "top_k", "a callback"],
)
def test_the_users_program_holds_any_operation(function: Any, grid: Mesh):
    @custom_partitioning
    def call(x: Any) -> Any:
        return jax.vmap(function)(x)

    def partition(mesh: Mesh, arguments: Any, result: Any) -> Any:
        rows = NamedSharding(mesh, P("x"))
        return mesh, jax.vmap(function), rows, (rows,)

    call.def_partition(partition, sharding_rule="i j k -> i l m")
    x = np.linspace(0, 1, 96, dtype=np.float32).reshape(8, 3, 4)
    with jax.default_device(jax.devices("cpu")[0]):
        wanted = np.asarray(jax.vmap(function)(x))
    np.testing.assert_allclose(jax.jit(call)(put(x, grid, "x")), wanted, rtol=1e-5, atol=1e-6)


def test_a_partition_of_other_shapes_is_an_error(grid: Mesh):
    @custom_partitioning
    def same(x: Any) -> Any:
        return x

    def partition(mesh: Mesh, arguments: Any, result: Any) -> Any:
        return mesh, lambda x: x, NamedSharding(mesh, P("x")), (NamedSharding(mesh, P()),)

    same.def_partition(partition, sharding_rule="i j -> i j")
    with pytest.raises(jax.errors.JaxRuntimeError, match="Mismatch in result shapes"):
        jax.jit(same)(put(X, grid, "x")).block_until_ready()


def test_a_function_of_another_process_is_refused():
    whole = jax_compat.Sharded((2,), np.dtype(np.float32), jax_compat.sharding_bytes(None, False))
    with pytest.raises(CallbackError, match="needs a function of this process; got '12'"):
        jax_compat.partition_custom("12", [whole], [whole])
