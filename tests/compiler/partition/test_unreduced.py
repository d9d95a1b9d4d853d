"""Values whose sum over a mesh axis is still to be taken: jax.P(unreduced=...)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from ipujax import jax_compat
from tests.compiler.partition.sharded_oracle import LocalProgram

A = np.arange(32, dtype=np.float32).reshape(4, 8)
B = A[::-1] * 0.5 + 3
UX, UY = P(unreduced={"x"}), P(unreduced={"y"})


@pytest.fixture(autouse=True)
def mesh() -> Iterator[Mesh]:
    """Of 2 x 2 devices with explicit axes."""
    devices = np.array(jax.devices("ipu")[:4]).reshape(2, 2)
    on = Mesh(devices, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    with jax.set_mesh(on):
        yield on


def parts(array: np.ndarray, spec: P = UX) -> jax.Array:
    """An array whose parts over the devices differ, as products leave it."""
    return jax.reshard(jax.device_put(array, P(None, "x")), spec)


def whole(array: jax.Array) -> np.ndarray:
    """What an array stands for: the sum of its parts."""
    return np.asarray(jax.reshard(array, P(*array.sharding.spec.partitions)))


def shards(array: jax.Array) -> list[np.ndarray]:
    return [np.asarray(shard.data) for shard in array.addressable_shards]


def collectives(f: Callable[..., Any], *args: Any) -> list[str]:
    text = LocalProgram(jax.jit(f), args, "ipu").text
    names = "all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute"
    return re.findall(rf'"stablehlo\.({names})"', text)


class Linear(NamedTuple):
    """An op of two unreduced arrays and a reduced one."""

    name: str
    f: Callable[..., Any]
    expected: Callable[..., Any]


LINEAR = (
    Linear("add", lambda u, v, r: u + v, lambda a, b: a + b),
    Linear("multiply", lambda u, v, r: u * r, lambda a, b: a * a),
    Linear("multiply_right", lambda u, v, r: r * v, lambda a, b: a * b),
    Linear("concatenate", lambda u, v, r: jnp.concatenate([u, v]), lambda a, b: np.vstack([a, b])),
    Linear("pad", lambda u, v, r: jnp.pad(u, 1), lambda a, b: np.pad(a, 1)),
    Linear("reshape", lambda u, v, r: u.reshape(8, 4), lambda a, b: a.reshape(8, 4)),
    Linear("transpose", lambda u, v, r: u.T, lambda a, b: a.T),
    Linear("slice", lambda u, v, r: u[1:3], lambda a, b: a[1:3]),
    Linear("sum", lambda u, v, r: u.sum(0), lambda a, b: a.sum(0)),
    Linear("select", lambda u, v, r: lax.select(r > 9, u, v), lambda a, b: np.where(a > 9, a, b)),
    Linear(
        "dynamic_update_slice",
        lambda u, v, r: lax.dynamic_update_slice_in_dim(u, v[:1], 1, 0),
        lambda a, b: np.vstack([a[:1], b[:1], a[2:]]),
    ),
    Linear("convert", lambda u, v, r: u.astype(jnp.bfloat16), lambda a, b: a.astype(jnp.bfloat16)),
    Linear("barrier", lambda u, v, r: lax.optimization_barrier(u), lambda a, b: a),
    Linear(
        "cond",
        lambda u, v, r: lax.cond(r[0, 1] > 0, lambda: u + v, lambda: u),
        lambda a, b: a + b,
    ),
    Linear("jit", lambda u, v, r: jax.jit(lambda z: z + z)(u), lambda a, b: 2 * a),
)


@pytest.mark.parametrize("case", LINEAR, ids=lambda case: case.name)
def test_linear_ops_work_on_parts(case: Linear):
    args = parts(A), parts(B), jax.device_put(A, P(reduced={"x"}))
    made = jax.jit(case.f)(*args)
    assert made.sharding.spec.unreduced == {"x"}
    np.testing.assert_array_equal(whole(made), case.expected(A, B))
    assert collectives(case.f, *args) == []


@pytest.mark.parametrize("platform", ["ipu", "cpu"])
def test_parts_are_those_of_jax(platform: str):
    """Each device's part, on the CPU backend too."""
    devices = np.array(jax.devices(platform)[:4]).reshape(2, 2)
    with jax.set_mesh(Mesh(devices, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)):
        left, right = A[:, :4] @ A[:, :4].T, A[:, 4:] @ A[:, 4:].T
        x = jax.device_put(A, P(None, "x"))
        product = jax.jit(lambda x: jnp.einsum("ij,kj->ik", x, x, out_sharding=UX))(x)
        for made, expected in (
            (product, [left, left, right, right]),
            (jax.reshard(jax.device_put(A, P()), UX), [A, A, 0 * A, 0 * A]),
            (jax.reshard(x, UX), [A * (np.arange(8) // 4 == k) for k in (0, 0, 1, 1)]),
            (
                jax.reshard(jax.device_put(A, P("y")), P("y", unreduced={"x"})),
                [A[:2], A[2:], 0 * A[:2], 0 * A[2:]],
            ),
        ):
            for shard, wanted in zip(shards(made), expected, strict=True):
                np.testing.assert_array_equal(shard, wanted)


def test_results_are_reported_unreduced(mesh: Mesh):
    for spec in (UX, UY, P(unreduced={"x", "y"}), P("y", unreduced={"x"})):
        made = jax.jit(lambda x, spec=spec: jax.reshard(x, spec))(jax.device_put(A, P()))
        assert made.sharding.is_equivalent_to(NamedSharding(mesh, spec), 2)
        np.testing.assert_array_equal(whole(made), A)
        np.testing.assert_array_equal(jax.reshard(made + made, P("x", "y")), 2 * A)


RESHARDS = (
    (UX, P(), ["all_reduce"]),
    (UX, P("x"), ["reduce_scatter"]),
    (UX, P(None, "x"), ["reduce_scatter"]),
    (UX, P("y", unreduced={"x"}), []),
    (UX, P(unreduced={"x", "y"}), []),
    (P(unreduced={"x", "y"}), UY, ["all_reduce"]),
    (P(unreduced={"x", "y"}), P("x", unreduced={"y"}), ["reduce_scatter"]),
    (P("y", unreduced={"x"}), P(None, "y", unreduced={"x"}), ["all_to_all"]),
    (P("y", unreduced={"x"}), UX, ["all_gather"]),
    (UX, UY, ["all_reduce"]),
    (P("x"), UX, []),
    (P("x", "y"), UX, ["all_gather"]),
    (P("x", "y"), P(unreduced={"x", "y"}), []),
    (P("x"), UY, ["all_gather"]),
    (P(), UX, []),
)


@pytest.mark.parametrize(("source", "target", "moves"), RESHARDS, ids=range(len(RESHARDS)))
def test_reshards(source: P, target: P, moves: list[str]):
    x = parts(A, source)

    def f(x: Any) -> Any:
        return jax.reshard(x, target)

    np.testing.assert_array_equal(whole(jax.jit(f)(x)), A)
    assert collectives(f, x) == moves


@pytest.mark.parametrize("dtype", [np.int8, np.bool_, np.complex64, np.uint32, jnp.bfloat16])
def test_reshards_of_other_dtypes(dtype: Any):
    x = (A % 2 + 1 - A % 2 * (dtype is np.bool_)).astype(dtype)
    for source in (P(), P("x"), P("y", "x")):
        made = jax.reshard(jax.device_put(x, source), UX)
        np.testing.assert_array_equal(np.asarray(jax.reshard(made, P("y"))), x)


def test_a_shard_map_takes_and_returns_parts():
    @jax.shard_map(in_specs=(P(None, "x"), P(None, "x")), out_specs=UX)
    def product(x: Any, y: Any) -> Any:
        return lax.pcast(x @ y.T, "x", to="unreduced")

    @jax.shard_map(in_specs=UX, out_specs=P())
    def total(z: Any) -> Any:
        return lax.psum(z, "x")

    @jax.shard_map(in_specs=UX, out_specs=P("x"))
    def scattered(z: Any) -> Any:
        return lax.psum_scatter(z, "x", tiled=True)

    args = jax.device_put(A, P(None, "x")), jax.device_put(B, P(None, "x"))
    for run in (jax.jit, lambda f: f):
        np.testing.assert_array_equal(run(lambda x, y: total(product(x, y)))(*args), A @ B.T)
        np.testing.assert_array_equal(run(lambda x, y: scattered(product(x, y)))(*args), A @ B.T)
        outside = run(lambda x, y: jax.reshard(product(x, y), P()))(*args)
        np.testing.assert_array_equal(outside, A @ B.T)


def test_edges_of_a_shard_map_without_checks_only_rename():
    same: Callable[..., Any] = lambda x: x  # noqa: E731
    out = jax.shard_map(same, in_specs=P(), out_specs=UX, check_vma=False)
    back = jax.shard_map(same, in_specs=UX, out_specs=P("x"), check_vma=False)
    made = jax.jit(out)(jax.device_put(A, P()))
    assert all((shard == A).all() for shard in shards(made))
    np.testing.assert_array_equal(whole(made), 2 * A)
    np.testing.assert_array_equal(jax.jit(back)(made), np.vstack([A, A]))


def test_gradients_of_what_is_reduced_are_unreduced():
    w, y = jax.device_put(A, P(reduced={"x"})), jax.device_put(B.T, P(None, "x"))

    def loss(w: Any, y: Any) -> Any:
        return (jnp.einsum("ab,bc->ac", w, y) ** 2).sum()

    for gradient in (jax.jit(jax.grad(loss)), jax.grad(loss)):
        made = gradient(w, y)
        assert made.sharding.spec.unreduced == {"x"}
        np.testing.assert_allclose(whole(made), 2 * (A @ B.T) @ B, rtol=1e-5)


def test_carries_of_loops_stay_unreduced():
    """Each step adds the parts of a product; one collective after the loop."""
    xs = jax.device_put(np.stack([A, B, A + B]), P(None, None, "x"))

    def f(xs: Any) -> Any:
        def body(total: Any, x: Any) -> Any:
            return total + jnp.einsum("ij,kj->ik", x, x, out_sharding=UX), None

        start = jnp.zeros((4, 4), jnp.float32, out_sharding=UX)
        return jax.reshard(lax.scan(body, start, xs)[0], P())

    expected = A @ A.T + B @ B.T + (A + B) @ (A + B).T
    np.testing.assert_allclose(jax.jit(f)(xs), expected, rtol=1e-6)
    assert collectives(f, xs) == ["all_reduce"]


def add_three_times(x: jax.Array) -> jax.Array:
    return lax.scan(lambda c, _: (c + x, None), x, None, length=3)[0]


REPLICATED: dict[str, Callable[[jax.Array], jax.Array]] = {
    "loop": lambda x: jax.reshard(add_three_times(x), UX),
    "loop in loop": lambda x: jax.reshard(add_three_times(add_three_times(x)), UX),
    "loop of unknown length": lambda x: jax.reshard(
        lax.while_loop(lambda c: c.sum() < 1e4, lambda c: 2 * c, x), UX
    ),
    "stacked": lambda x: jax.reshard(
        lax.scan(lambda c, _: (c + x, c), x, None, length=3)[1], P(unreduced={"x", "y"})
    ),
    "branch": lambda x: jax.reshard(lax.cond(x.sum() > 0, lambda: x + 1, lambda: x), UX),
    "barrier": lambda x: jax.reshard(lax.optimization_barrier((x, x + 1))[1], UX),
    "in a loop": lambda x: lax.scan(
        lambda c, _: (jax.reshard(jax.reshard(2 * c, UX), P()), None), x, None, length=3
    )[0],
    "carried by a loop": lambda x: lax.scan(
        lambda c, _: ((c[0] + jax.reshard(c[1], UX), 2 * c[1]), None),
        (jax.reshard(x, UX), x),
        None,
        length=3,
    )[0][0],
    "read twice": lambda x: jax.reshard(add_three_times(x), UX) + jax.reshard(x, UX),
}


@pytest.mark.parametrize("name", REPLICATED)
def test_replicated_values_become_unreduced(name: str):
    """Shardy writes no sharding for loops, branches and barriers of replicated values."""
    f = jax.jit(REPLICATED[name])
    made = f(jax.device_put(A, P()))
    cpu = np.array(jax.devices("cpu")[:1]).reshape(1, 1)
    with jax.set_mesh(Mesh(cpu, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)):
        expected = whole(f(jax.device_put(A, P())))
    np.testing.assert_allclose(whole(made), expected, rtol=1e-6)


def test_constants_count_once():
    """Where JAX's CPU backend takes the number on each device for a part."""
    made = jax.jit(lambda u: u + jnp.ones((4, 8), jnp.float32, out_sharding=UX))(parts(A))
    np.testing.assert_array_equal(whole(made), A + 1)
    made = jax.jit(lambda u: lax.pad(u, np.float32(7), [(1, 0, 0), (0, 0, 0)]))(parts(A))
    np.testing.assert_array_equal(whole(made), np.pad(A, [(1, 0), (0, 0)], constant_values=7))
    made = jax.jit(lambda u: lax.fori_loop(0, 3, lambda i, c: c + u, u))(parts(A))
    np.testing.assert_array_equal(whole(made), 4 * A)


def test_gradients_accumulate_without_communication():
    """Those of two micro-batches are added before they are summed over the devices."""
    w = jax.device_put(A, P(reduced={"x"}))
    x = jax.device_put(np.stack([B, B + 1]), P(None, "x"))

    def f(w: Any, x: Any) -> Any:
        def loss(w: Any, x: Any) -> Any:
            return jnp.einsum("ab,cb->ca", w, x).sum()

        return jax.reshard(jax.grad(loss)(w, x[0]) + jax.grad(loss)(w, x[1]), P())

    expected = np.ones((4, 4), np.float32) @ (B + B + 1)
    np.testing.assert_allclose(jax.jit(f)(w, x), expected, rtol=1e-6)
    assert collectives(f, w, x) == ["all_reduce"]


def test_axes_of_one_device_are_not_mentioned():
    devices = np.array(jax.devices("ipu")[:2]).reshape(1, 2, 1)
    on = Mesh(devices, ("x", "y", "z"), axis_types=(AxisType.Explicit,) * 3)
    with jax.set_mesh(on):
        made = jax.jit(lambda x: jax.reshard(x, P(unreduced={"x", "y"})))(jax.device_put(A, P()))
        assert made.sharding.spec.unreduced == {"x", "y"}
        np.testing.assert_array_equal(whole(made), A)


def test_shardings_have_the_bytes_of_jax(mesh: Mesh):
    for spec in (UX, UY, P("y", unreduced={"x"}), P(None, "x", unreduced={"y"})):
        program = LocalProgram(jax.jit(lambda x: x), [parts(A, spec)], "ipu")
        for sharding in (*program.parameters, *program.results):
            assert jax_compat.hlo_sharding(sharding) == NamedSharding(
                mesh, spec
            )._to_xla_hlo_sharding(2)
