"""`Op`: one custom call under all of JAX's transformations, and the definition elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu
from ipujax.compiler.ir import Op as CompilerOp
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule
from ipujax.ops.definition import Op
from ipujax.ops.dimensions import Dimensions

SEEN: list[dict[str, Any]] = []


@custom_call_rule("ipu_test_scaled", "ipu_test_scaled_gradient")
def scaled_rule(builder: Builder, op: CompilerOp) -> Sequence[Any]:
    """x * w * factor, as one map; of the gradient, also the sum over rows."""
    from ipujax.compiler.rules import poplar

    config = parameters_of(op)
    x, w, *rest = builder.operands(op)
    SEEN.append({"target": op.attrs["call_target_name"], "shape": list(x.shape)})
    e, debug = poplar.popops.expr, builder.debug(op)
    rows = w.reshape([*[1] * (len(x.shape) - 1), w.shape[0]])
    for dim, size in enumerate(x.shape[:-1]):
        rows = rows.broadcast(size, dim)
    if not rest:
        product = e.Mul(e.Mul(e.PlaceHolder(1), e.PlaceHolder(2)), e.Const(config["factor"]))
        return builder.map([product], [x, rows], debug)
    product = e.Mul(e.Mul(e.PlaceHolder(1), e.PlaceHolder(2)), e.Const(config["factor"]))
    dx = builder.map([product], [rest[0], rows], debug)[0]
    dw = builder.map([product], [rest[0], x], debug)[0]
    add = poplar.popops.ReduceParams(poplar.popops.Operation.ADD)
    dims = list(range(len(x.shape) - 1))
    return [dx, poplar.popops.reduce(builder.graph, dw, dims, add, builder.program, debug)]


def plain(x: jax.Array, w: jax.Array, *, factor: float) -> jax.Array:
    return x * w * jnp.asarray(factor, x.dtype)


def plain_gradient(x: jax.Array, w: jax.Array, g: jax.Array, *, factor: float) -> Any:
    dims = tuple(range(x.ndim - 1))
    return g * w * factor, jnp.sum(g * x * factor, dims)


GRADIENT = Op(
    "test_scaled_gradient",
    plain_gradient,
    multiple=True,
    dimensions="...c, c, ...c -> ...c, c",
)
SCALED = Op(
    "test_scaled",
    plain,
    dimensions="...c, c -> ...c",
    vjp=lambda operands, results, cotangents, factor: GRADIENT(
        *operands, cotangents[0], factor=factor
    ),
)
X = np.arange(24, dtype=np.float32).reshape(2, 4, 3) / 7
W = np.array([1, -2, 3], np.float32)


def scaled(x: Any, w: Any) -> jax.Array:
    return SCALED(x, w, factor=2.0)


def loss(x: Any, w: Any) -> jax.Array:
    return jnp.sum(jnp.sin(scaled(x, w)))


def plain_loss(x: Any, w: Any) -> jax.Array:
    return jnp.sum(jnp.sin(plain(x, w, factor=2.0)))


def on_cpu(function: Callable[..., Any], *arguments: Any) -> Any:
    with jax.default_device(jax.devices("cpu")[0]):
        return jax.tree.map(np.asarray, jax.jit(function)(*arguments))


def assert_close(found: Any, wanted: Any) -> None:
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(np.asarray(a), b, rtol=2e-6, atol=2e-6),
        found,
        wanted,
    )


def seen_by(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The targets of the calls in a program that was not compiled before."""
    SEEN.clear()
    jax.block_until_ready(jax.jit(lambda *given: function(*given))(*arguments))
    return [call["target"] for call in SEEN]


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "forward": (scaled, lambda x, w: 2 * x * w),
    "gradient": (jax.grad(loss, (0, 1)), jax.grad(plain_loss, (0, 1))),
    "gradient of one": (jax.grad(loss, 1), jax.grad(plain_loss, 1)),
    "vmap": (
        jax.vmap(scaled, (1, None), 1),
        lambda x, w: 2 * x * w,
    ),
    "vmap of both": (
        lambda x, w: jax.vmap(scaled)(x, jnp.stack([w, 2 * w])),
        lambda x, w: 2 * x * jnp.stack([w, 2 * w])[:, None],
    ),
    "gradient of each": (
        jax.vmap(jax.grad(loss, (0, 1)), (0, None)),
        jax.vmap(jax.grad(plain_loss, (0, 1)), (0, None)),
    ),
    "forward mode": (
        lambda x, w: jax.jvp(loss, (x, w), (x, w)),
        lambda x, w: jax.jvp(plain_loss, (x, w), (x, w)),
    ),
    "order two": (jax.hessian(loss, 1), jax.hessian(plain_loss, 1)),
    "reverse of reverse": (
        jax.grad(lambda x, w: jnp.sum(jax.grad(loss)(x, w) ** 2), (0, 1)),
        jax.grad(lambda x, w: jnp.sum(jax.grad(plain_loss)(x, w) ** 2), (0, 1)),
    ),
    "reverse of forward": (
        jax.grad(lambda x, w: jax.jvp(loss, (x, w), (x, w))[1], (0, 1)),
        jax.grad(lambda x, w: jax.jvp(plain_loss, (x, w), (x, w))[1], (0, 1)),
    ),
    "scan": (
        jax.grad(lambda x, w: lax.scan(lambda c, r: (c + loss(r, w), None), 0.0, x)[0], (0, 1)),
        jax.grad(lambda x, w: plain_loss(x, w), (0, 1)),
    ),
    "remat": (
        jax.grad(jax.checkpoint(loss), (0, 1)),
        jax.grad(plain_loss, (0, 1)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_transformations(name: str) -> None:
    program, definition = PROGRAMS[name]
    assert_close(jax.jit(program)(X, W), on_cpu(definition, X, W))
    assert_close(on_cpu(program, X, W), on_cpu(definition, X, W))


def test_calls_that_the_compiler_gets() -> None:
    assert seen_by(scaled, X, W) == ["ipu_test_scaled"]
    # The function's own gradient, and no second call of the function.
    assert sorted(seen_by(jax.grad(scaled_sum), X, W)) == ["ipu_test_scaled_gradient"]
    # vmap leads with its axis where the dimensions allow it.
    assert seen_by(jax.vmap(scaled, (1, None)), X, W) == ["ipu_test_scaled"]
    assert seen_by(lambda x: jax.vmap(scaled)(x, jnp.ones((2, 3))), X) == []


def scaled_sum(x: Any, w: Any) -> jax.Array:
    return jnp.sum(scaled(x, w))


def test_eager_calls_compile_once() -> None:
    scaled(X, W)
    SEEN.clear()
    assert_close(scaled(X + 1, W), 2 * (X + 1) * W)
    assert SEEN == []


@pytest.mark.parametrize("rows", [2, 3])  # 3 rows on 2 devices are padded
def test_sharded_along_the_batch_and_the_channels(rows: int) -> None:
    mesh = Mesh(np.array(jax.devices("ipu")[:4]).reshape(2, 2), ("a", "b"))
    x = np.arange(16 * rows, dtype=np.float32).reshape(rows, 4, 4) / 7
    w = np.array([1, -2, 3, 4], np.float32)
    place = NamedSharding(mesh, P("a", None, "b"))

    def step(x: jax.Array, w: jax.Array) -> Any:
        x = lax.with_sharding_constraint(x, place)
        return jax.value_and_grad(loss, (0, 1))(x, w)

    SEEN.clear()
    operands = [jax.device_put(each, NamedSharding(mesh, P())) for each in (x, w)]
    assert_close(jax.jit(step)(*operands), on_cpu(jax.value_and_grad(plain_loss, (0, 1)), x, w))
    assert {call["target"] for call in SEEN} == {"ipu_test_scaled", "ipu_test_scaled_gradient"}
    assert all(call["shape"] == [(rows + 1) // 2, 4, 2] for call in SEEN), SEEN


def test_dimensions_that_are_sharded_may_come_after_whole_ones() -> None:
    """The rule for Shardy names dimensions in the order in which they appear."""
    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("a",))
    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    labels = np.array([[1], [0], [1], [1]], np.int32)
    places = [NamedSharding(mesh, P(None, "a")), NamedSharding(mesh, P("a"))]
    operands = [jax.device_put(*each) for each in zip((x, labels), places, strict=True)]

    def one_class(x: jax.Array, labels: jax.Array) -> jax.Array:
        return jnp.sum(ipu.nn.ctc_loss(x, 0 * labels, blank_index=1))

    found = jax.jit(jax.value_and_grad(one_class))(*operands)
    assert_close(found, on_cpu(jax.value_and_grad(one_class), x, labels))


@custom_call_rule("ipu_test_many")
def many_rule(builder: Builder, op: CompilerOp) -> Sequence[Any]:
    from ipujax.compiler.rules import poplar

    e = poplar.popops.expr
    last = builder.operands(op)[-1]
    return builder.map([e.Add(e.PlaceHolder(1), e.Const(1.0))], [last], builder.debug(op))


def test_more_dimensions_than_letters() -> None:
    """Shardy's names go on after z."""
    many = Op("test_many", lambda *x: x[-1] + 1, dimensions="ABCDE, ABCDE, ABCDE, ABCDE, z -> z")
    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("a",))
    whole, place = NamedSharding(mesh, P()), NamedSharding(mesh, P("a"))
    operands = [np.ones((1, 2, 3, 4, 5), np.float32)] * 4 + [np.arange(4, dtype=np.float32)]
    run = jax.jit(lambda *x: many(*x), in_shardings=(whole, whole, whole, whole, place))
    found = run(*operands)
    np.testing.assert_array_equal(found, [1, 2, 3, 4])
    assert found.sharding.is_equivalent_to(place, 1)


@pytest.mark.parametrize("platform", ["cpu", "ipu"])
@pytest.mark.parametrize("check", [True, False])
def test_shard_map(platform: str, check: bool) -> None:
    mesh = Mesh(np.array(jax.devices(platform)[:2]), ("a",))

    def inside(x: jax.Array, w: jax.Array) -> Any:
        return lax.psum(loss(x, w), "a")

    mapped = jax.shard_map(
        inside, mesh=mesh, in_specs=(P("a"), P()), out_specs=P(), check_vma=check
    )
    assert_close(
        jax.jit(jax.grad(mapped, (0, 1)))(X, W), on_cpu(jax.grad(plain_loss, (0, 1)), X, W)
    )


def test_pmap() -> None:
    found = ipu.pmap(lambda x: jax.grad(loss, (0, 1))(x, W), axis_name="r")(X)
    wanted = [on_cpu(jax.grad(plain_loss, (0, 1)), x, W) for x in X]
    assert_close(found, jax.tree.map(lambda *each: np.stack(each), *wanted))


def test_dimensions() -> None:
    dims = Dimensions("...c, c, ...C -> ...c, c")
    assert dims.numbered([3, 1, 2], [3, 1]) == [[[0, 1, 2], [2], [0, None]], [[0, 1, 2], [2]]]
    assert dims.leads == [True, False, True]
    assert not dims.can_lead([True, False, True])
    assert Dimensions("...c, c -> ...c").can_lead([True, False])
    assert not Dimensions("...c, c -> ...c").can_lead([True, True])
    with pytest.raises(ValueError, match="got rank 2 for 'c'"):
        dims.numbered([3, 2, 2], [3, 1])
    rows = Dimensions("D..., S... -> D...")
    assert rows.numbered([3, 3], [3]) == [[[None, 0, 1], [None, 0, 1]], [[None, 0, 1]]]
    assert not rows.can_lead([True, True])


def test_other_dtypes_and_integers() -> None:
    """Operands without a derivative have none; results of integer dtypes too."""
    op = Op(
        "test_pair",
        lambda x, i: (x * i, i + 1),
        multiple=True,
        dimensions="..., ... -> ..., ...",
        vjp=lambda operands, results, cotangents: (cotangents[0] * operands[1], None),
    )
    i = np.array([1, 2], np.int32)
    x = np.array([3.0, 4.0], np.float16)
    with jax.default_device(jax.devices("cpu")[0]):
        y, n = op(x, i)
        assert (y.dtype, n.dtype) == (jnp.float16, jnp.int32)
        grad = jax.grad(lambda x: jnp.sum(op(x, i)[0]))(x)
        np.testing.assert_array_equal(grad, i.astype(np.float16))
