"""Programs over several devices: whole ones here, single ops with each dimension sharded in turn.

A case is device-independent: `case.program(devices)` gives the jitted function on those devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.shard_alike import shard_alike
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.cases import sharded_models as models

AXES = ("a", "b", "c")
ANY = "whatever the compiler finds"


class Program(NamedTuple):
    """A jitted function and its arguments, on the host."""

    f: Any
    args: tuple[Any, ...]


@dataclass(frozen=True)
class ShardedCase:
    """`make(mesh)(*args)`, with the arguments sharded by `specs`.

    Attributes:
        specs: of each argument, a pytree prefix; ANY for those without.
        out: of the results; ANY to let the compiler choose.
        order: which devices the mesh is made of, in what order; all that it needs if empty.
    """

    name: str
    make: Callable[[Mesh], Callable[..., Any]] = field(compare=False)
    args: tuple[Any, ...] = field(compare=False)
    specs: tuple[Any, ...] = ()
    mesh: tuple[int, ...] = (4,)
    out: Any = ANY
    order: tuple[int, ...] = ()
    donate: tuple[int, ...] = ()
    rtol: float = 1e-4
    atol: float = 1e-5

    def mesh_of(self, devices: Sequence[Any]) -> Mesh:
        size = int(np.prod(self.mesh))
        chosen = [devices[k] for k in self.order or range(size)]
        axes = AXES[: len(self.mesh)]
        kinds = (AxisType.Auto,) * len(axes)
        return Mesh(np.array(chosen).reshape(self.mesh), axes, axis_types=kinds)

    def program(self, devices: Sequence[Any]) -> Program:
        mesh = self.mesh_of(devices)

        def sharding(spec: Any) -> Any:
            return None if spec is ANY else NamedSharding(mesh, spec)

        def is_spec(x: Any) -> bool:
            return x is ANY or isinstance(x, P)

        options: dict[str, Any] = {"keep_unused": True, "donate_argnums": self.donate}
        if self.specs:
            options["in_shardings"] = jax.tree.map(sharding, self.specs, is_leaf=is_spec)
        if self.out is not ANY:
            options["out_shardings"] = jax.tree.map(sharding, self.out, is_leaf=is_spec)
        return Program(jax.jit(self.make(mesh), **options), self.args)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def plain(f: Callable[..., Any]) -> Callable[[Mesh], Callable[..., Any]]:
    return lambda mesh: f


def mapped(f: Any, ins: Any, outs: Any, axes: Any = None) -> Callable[[Mesh], Callable[..., Any]]:
    """shard_map over all axes, or over some of them."""

    def make(mesh: Mesh) -> Callable[..., Any]:
        some = {"axis_names": set(axes)} if axes else {}
        return jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False, **some)

    return make


def constrained(f: Callable[..., Any], spec: P) -> Callable[[Mesh], Callable[..., Any]]:
    """The first argument is given another sharding inside."""

    def make(mesh: Mesh) -> Callable[..., Any]:
        def g(x: Any, *rest: Any) -> Any:
            return f(lax.with_sharding_constraint(x, NamedSharding(mesh, spec)), *rest)

        return g

    return make


X8 = numbers(8, 8)
W = numbers(8, 16, seed=1)
IDS = np.array([1, 3, 2, 2, 5, 1, 0, 7], np.int32)
RING = [(k, (k + 1) % 4) for k in range(4)]


def _index_psum(a: Any) -> Any:
    return lax.psum(a * lax.axis_index("a").astype(jnp.float32), "a")


def _partial_manual(a: Any) -> Any:
    a = lax.with_sharding_constraint(a, P(None, "b"))
    i = lax.axis_index("a").astype(jnp.float32)
    swapped = lax.ppermute(a, "a", [(0, 1), (1, 0)])
    scattered = lax.psum_scatter(a @ a.T, "a", tiled=True)
    return lax.psum(jnp.sin(a) * i, "a"), lax.all_gather(a, "a"), swapped, scattered


def _nested(mesh: Mesh) -> Callable[..., Any]:
    def inner(a: Any) -> Any:
        return lax.psum(a * lax.axis_index("b"), "b")

    def outer(a: Any) -> Any:
        b = jax.shard_map(
            inner, in_specs=P(None, "b"), out_specs=P(), axis_names={"b"}, check_vma=False
        )(a)
        return lax.pmax(b, "a") * lax.axis_index("a")

    return jax.shard_map(
        outer, mesh=mesh, in_specs=P("a"), out_specs=P("a"), axis_names={"a"}, check_vma=False
    )


def _scan(x: Any, ws: Any) -> Any:
    return lax.scan(lambda c, w: (jnp.sin(c) @ w, c.sum()), x, ws)


def _count_down(x: Any) -> Any:
    return lax.while_loop(lambda c: c[1].sum() > 1, lambda c: (c[0] + 1, c[1] * 0.5), (0.0, x))


def _reshapes(y: Any) -> Any:
    return y.reshape(2, 6, 6).sum(1), y.reshape(3, 4, 6) * 2, y.T @ y, y.ravel(), y.cumsum(0)


def _loss(e: Any, ids: Any, y: Any) -> Any:
    return jnp.sum((e[ids] - y) ** 2)


def _batch_norm(x: Any, k: Any) -> Any:
    def loss(x: Any, k: Any) -> Any:
        y = lax.conv_general_dilated(x, k, (1, 1), "SAME")
        y = (y - y.mean((0, 2, 3), keepdims=True)) * lax.rsqrt(y.var((0, 2, 3), keepdims=True) + 1)
        return jnp.sum(jnp.tanh(y) ** 3)

    return jax.value_and_grad(loss, (0, 1))(x, k)


def _swap(mesh: Mesh) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        y = lax.with_sharding_constraint(x, NamedSharding(mesh, P("b", "a")))
        z = lax.with_sharding_constraint(y * 2, NamedSharding(mesh, P(("b", "a"))))
        return y, z, lax.with_sharding_constraint(z, NamedSharding(mesh, P(("a", "b"))))

    return f


KEY = np.array([0, 7], np.uint32)

MANUAL = [
    ShardedCase("psum", mapped(_index_psum, P("a"), P()), (X8,)),
    ShardedCase("psum_reversed", mapped(_index_psum, P("a"), P()), (X8,), order=(3, 2, 1, 0)),
    ShardedCase("psum_partial", mapped(_index_psum, P("a"), P()), (X8,), mesh=(2,), order=(2, 3)),
    ShardedCase("all_gather", mapped(lambda a: lax.all_gather(a, "a"), P("a"), P("a")), (X8,)),
    ShardedCase(
        "psum_scatter",
        mapped(lambda a: lax.psum_scatter(jnp.tile(a, (4, 1)), "a", tiled=True), P("a"), P("a")),
        (X8,),
    ),
    ShardedCase("ppermute", mapped(lambda a: lax.ppermute(a, "a", RING), P("a"), P("a")), (X8,)),
    ShardedCase(
        "all_to_all",
        mapped(lambda a: lax.all_to_all(a, "a", 1, 0, tiled=True), P("a"), P("a")),
        (X8,),
    ),
    ShardedCase(
        "pmax_pmean", mapped(lambda a: (lax.pmax(a, "a"), lax.pmean(a, "a")), P("a"), P()), (X8,)
    ),
    ShardedCase(
        "psum_of_two_axes",
        mapped(lambda a: (lax.psum(a, ("a", "b")), lax.psum(a, "b")), P("a", "b"), (P(), P("a"))),
        (X8,),
        mesh=(2, 4),
    ),
    ShardedCase(
        "psum_in_groups",
        mapped(lambda a: lax.psum(a, "a", axis_index_groups=[[0, 3], [1, 2]]), P("a"), P("a")),
        (X8,),
    ),
    ShardedCase(
        "partial_manual",
        mapped(_partial_manual, P("a", None), (P(), P("a"), P("a"), P("a")), "a"),
        (X8,),
        (P("a", "b"),),
        mesh=(2, 4),
    ),
    ShardedCase("nested_manual", _nested, (X8,), (P("a", "b"),), mesh=(2, 2)),
    ShardedCase(
        "manual_grad",
        lambda mesh: jax.grad(
            lambda x, w: jax.shard_map(
                lambda x, w: lax.psum(jnp.sum(jnp.tanh(x @ w)), "a"),
                mesh=mesh,
                in_specs=(P("a"), P()),
                out_specs=P(),
            )(x, w),
            (0, 1),
        ),
        (X8, W),
    ),
    ShardedCase(
        "manual_in_scan",
        lambda mesh: (
            lambda x: lax.scan(
                lambda c, _: (
                    jax.shard_map(
                        lambda a: a * 0.5 + lax.pmean(a, "a"),
                        mesh=mesh,
                        in_specs=P("a"),
                        out_specs=P("a"),
                    )(c),
                    None,
                ),
                x,
                None,
                length=3,
            )[0]
        ),
        (X8,),
    ),
]

AUTO = [
    ShardedCase("plus_one", plain(lambda x: x + 1), (X8,), (P("a"),)),
    ShardedCase("no_specs_at_all", plain(lambda x: x @ x), (X8,), (P(),)),
    ShardedCase(
        "data_parallel_step",
        plain(models.mlp_step),
        (models.mlp_params(), numbers(16, 8), numbers(16, 4)),
        (P(), P("a"), P("a")),
        rtol=1e-3,
    ),
    ShardedCase(
        "data_parallel_step_donated",
        plain(models.mlp_step),
        (models.mlp_params(), numbers(16, 8), numbers(16, 4)),
        (P(), P("a"), P("a")),
        out=(P(), P()),
        donate=(0,),
        rtol=1e-3,
    ),
    ShardedCase(
        "tensor_parallel_step",
        plain(models.mlp_step),
        (models.mlp_params(), numbers(16, 8), numbers(16, 4)),
        (models.MLP_TENSOR_SPECS, P("a"), P("a")),
        mesh=(2, 4),
        out=(models.MLP_TENSOR_SPECS, P()),
        rtol=1e-3,
    ),
    ShardedCase(
        "fsdp_step",
        plain(models.mlp_step),
        (models.mlp_params(), numbers(16, 8), numbers(16, 4)),
        (models.MLP_FSDP_SPECS, P("a"), P("a")),
        out=(models.MLP_FSDP_SPECS, P()),
        rtol=1e-3,
    ),
    ShardedCase(
        "product_tensor_parallel",
        plain(lambda x, w: jnp.max(x @ w, axis=1)),
        (X8, W),
        (P(None, "a"), P("a", None)),
        out=P(),
    ),
    ShardedCase(
        "product_fsdp", plain(jnp.dot), (X8, W), (P("a"), P("a")), out=P("a"), order=(3, 2, 1, 0)
    ),
    ShardedCase("product_scattered", plain(jnp.dot), (X8, W), (P(None, "a"), P("a")), out=P("a")),
    ShardedCase(
        "product_on_a_grid",
        plain(jnp.dot),
        (X8, W),
        (P("a", "b"), P("b", None)),
        mesh=(2, 4),
        out=P(("a", "b")),
    ),
    ShardedCase("rows_to_columns", constrained(lambda x: x * 2, P(None, "a")), (X8,), (P("a"),)),
    ShardedCase("swap_axes", _swap, (X8,), (P("a", "b"),), mesh=(2, 2)),
    ShardedCase("swap_axes_2x4", _swap, (X8,), (P("a", "b"),), mesh=(2, 4)),
    ShardedCase(
        "swap_axes_permuted", _swap, (X8,), (P("a", "b"),), mesh=(2, 2), order=(2, 0, 3, 1)
    ),
    ShardedCase("scan", plain(_scan), (X8, numbers(3, 8, 8)), (P("a"), P(None, None, "a"))),
    ShardedCase("scan_over_sharded", plain(_scan), (X8, numbers(4, 8, 8)), (P(), P("a"))),
    ShardedCase("while", plain(_count_down), (np.abs(X8) * 8,), (P("a"),)),
    ShardedCase(
        "cond",
        plain(lambda p, x: lax.cond(p > 0, lambda x: x @ x, lambda x: x * 2, x)),
        (np.float32(1), X8),
        (P(), P("a")),
    ),
    ShardedCase(
        "switch_on_sharded",
        plain(lambda x: lax.switch(jnp.int32(x.sum() > 0), [jnp.sin, jnp.cos], x)),
        (X8,),
        (P("a"),),
    ),
    ShardedCase(
        "embedding_grad_data_parallel",
        plain(jax.grad(_loss)),
        (W, IDS, numbers(8, 16)),
        (P(), P("a"), P("a")),
    ),
    ShardedCase(
        "embedding_grad_rows",
        plain(jax.grad(_loss)),
        (W, IDS, numbers(8, 16)),
        (P("a"), P(), P()),
        out=P("a"),
    ),
    ShardedCase(
        "embedding_grad_columns",
        plain(jax.value_and_grad(_loss)),
        (W, IDS, numbers(8, 16)),
        (P(None, "a"), P(), P()),
    ),
    ShardedCase("random_normal", plain(lambda k: jax.random.normal(k, (8, 8))), (KEY,), out=P("a")),
    ShardedCase(
        "random_columns", plain(lambda k: jax.random.uniform(k, (4, 8))), (KEY,), out=P(None, "a")
    ),
    ShardedCase(
        "conv_batch_norm_grad",
        plain(_batch_norm),
        (numbers(8, 4, 6, 6), numbers(8, 4, 3, 3)),
        (P("a"), P()),
        rtol=1e-3,
        atol=1e-4,
    ),
    ShardedCase(
        "conv_batch_norm_grad_features",
        plain(_batch_norm),
        (numbers(8, 4, 6, 6), numbers(8, 4, 3, 3)),
        (P(), P("a")),
        rtol=1e-3,
        atol=1e-4,
    ),
    ShardedCase(
        "sums_of_sums",
        plain(lambda x, w: (x @ w + jnp.sin(x) @ w + x[:, :1] @ w[:1], (x * 2) @ w - x @ w)),
        (X8, W),
        (P(None, "a"), P("a")),
    ),
    ShardedCase(
        "approx_max_k", plain(lambda x: lax.approx_max_k(x, 3)), (numbers(8, 64),), (P("a"),)
    ),
    ShardedCase(
        "alike",
        plain(lambda x: shard_alike(x * 2, jnp.ones((8, 8)) * 3)),
        (X8,),
        (P("a"),),
    ),
    ShardedCase(
        "unconstrained",
        constrained(lambda x: x @ x, P(P.UNCONSTRAINED, "a")),
        (X8,),
        (P("a"),),
    ),
    ShardedCase(
        "uneven_constraint",
        lambda mesh: (
            lambda x: lax.with_sharding_constraint(x[:7] * 2, NamedSharding(mesh, P("a"))).sum(0)
        ),
        (X8,),
    ),
    ShardedCase(
        "uneven_scan", constrained(lambda x: _scan(x, X8[:3, None] * X8), P("a")), (X8,), mesh=(3,)
    ),
    ShardedCase(
        "uneven_softmax", constrained(lambda x: jax.nn.softmax(x, 0), P("a")), (X8,), mesh=(5,)
    ),
    ShardedCase(
        "uneven_argmax",
        constrained(lambda x: (x.argmax(0), x.max(0)), P("a")),
        (-X8 - 9,),
        mesh=(3,),
    ),
    ShardedCase(
        "uneven_grad", constrained(jax.grad(lambda x: (x @ x.T).std()), P("a")), (X8,), mesh=(3,)
    ),
    ShardedCase(
        "uneven_on_two_axes", constrained(lambda x: x @ x, P("b", "a")), (X8,), mesh=(2, 3)
    ),
    ShardedCase(
        "uneven_over_both_axes", constrained(lambda x: x @ x, P(("a", "b"))), (X8,), mesh=(2, 3)
    ),
    ShardedCase(
        "uneven_mean_of_ints",
        constrained(lambda x: jnp.arange(8).mean() * x, P("a")),
        (X8,),
        mesh=(3,),
    ),
    ShardedCase("six_devices", plain(_reshapes), (numbers(12, 6),), (P("a"),), mesh=(6,)),
    ShardedCase("two_by_three", plain(_reshapes), (numbers(12, 6),), (P("a", "b"),), mesh=(2, 3)),
    ShardedCase("three_by_two", plain(_reshapes), (numbers(12, 6),), (P(("b", "a")),), mesh=(3, 2)),
    ShardedCase(
        "three_axes",
        lambda mesh: (
            lambda z: (
                jnp.einsum("ijk,kjl->il", z, z),
                z.transpose(2, 0, 1).reshape(64, 8) @ z[0],
                lax.with_sharding_constraint(z, NamedSharding(mesh, P(("c", "a"), None, "b"))),
            )
        ),
        (numbers(8, 8, 8),),
        (P("a", "b", "c"),),
        mesh=(2, 2, 2),
    ),
    ShardedCase(
        "dtypes",
        plain(lambda x: [(x * 10).astype(t).sum(0) for t in ("int8", "int32", "bool", "bfloat16")]),
        (X8,),
        (P("a"),),
        rtol=2e-2,
        atol=2e-1,
    ),
    ShardedCase(
        "pmap_like",
        mapped(lambda x, w: lax.pmean(x @ w, "a"), (P("a"), P()), P("a")),
        (X8, W),
    ),
]

MODELS = [
    ShardedCase(
        f"gpt_{name}{'_scanned' if scanned else ''}",
        plain(models.gpt_step(scanned)),
        models.gpt_args(scanned),
        models.gpt_specs(scanned, name),
        mesh=mesh,
        out=models.gpt_out_specs(scanned, name),
        rtol=5e-3,
        atol=1e-3,
    )
    for name, mesh in (("dp", (4,)), ("dp_tp", (2, 4)), ("fsdp", (4,)))
    for scanned in (False, True)
]

CASES = MANUAL + AUTO + MODELS
