"""Ops whose arguments are sharded along each dimension in turn; many ops make one program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.cases.sharded import numbers

Ops = dict[str, Callable[..., Any]]

IDS = np.array([1, 3, 2, 2, 5, 1, 0, 7], np.int32)
IDS2 = np.array([[1, 0], [3, 2], [7, 11], [2, 5]], np.int32)


@dataclass(frozen=True)
class OpGroup:
    """Ops that take the same arguments. `specs` shard them, over meshes of these shapes.

    Attributes:
        divided_only: leaves out devices that do not divide (XLA's CPU backend ends with an error
            of its own for FFTs between copies, in layouts that it chose itself).
    """

    name: str
    ops: Ops = field(compare=False)
    args: tuple[np.ndarray, ...] = field(compare=False)
    divided_only: bool = False

    def f(self, *args: Any) -> dict[str, Any]:
        return {name: op(*args) for name, op in self.ops.items()}

    def specs(self) -> Iterator[tuple[tuple[int, ...], tuple[P, ...]]]:
        """Mesh shapes and specs: each dimension alone, two on two axes, one on two axes; and each
        over devices that do not divide it."""
        for index, array in enumerate(self.args):
            dims = [d for d in range(array.ndim) if array.shape[d] % 4 == 0]
            for d in dims:
                yield (4,), self._spec(index, {d: "a"})
            if index == 0 and len(dims) > 1:
                yield (2, 2), self._spec(index, {dims[0]: "a", dims[1]: "b"})
                yield (2, 2), self._spec(index, {dims[-1]: ("b", "a")})
            for d, size in enumerate(array.shape):
                if size > 5 and not self.divided_only:
                    yield (3 if size % 3 else 5,), self._spec(index, {d: "a"})

    def _spec(self, index: int, dims: dict[int, Any]) -> tuple[P, ...]:
        specs = [P()] * len(self.args)
        specs[index] = P(*(dims.get(d) for d in range(self.args[index].ndim)))
        return tuple(specs)


MOVES: Ops = {
    "slice": lambda x: x[1:7, 2:11],
    "slice_half": lambda x: x[:4, 4:],
    "slice_strided": lambda x: x[::2, 1::3],
    "slice_backwards": lambda x: x[::-2],
    "pad": lambda x: jnp.pad(x, ((1, 3), (0, 4))),
    "pad_inside": lambda x: lax.pad(x, 2.0, ((0, 1, 1), (-1, 1, 0))),
    "flip_rows": lambda x: jnp.flip(x, 0),
    "flip_columns": lambda x: jnp.flip(x, 1),
    "roll": lambda x: jnp.roll(x, (3, -2), (0, 1)),
    "concatenate_rows": lambda x: jnp.concatenate([x, x * 2, x[:4]], 0),
    "concatenate_columns": lambda x: jnp.concatenate([x, x], 1),
    "stack": lambda x: jnp.stack([x, -x], 1),
    "split": lambda x: jnp.split(x, 4, 1),
    "tile": lambda x: jnp.tile(x, (2, 1)),
    "repeat": lambda x: jnp.repeat(x, 2, 1),
    "transpose": lambda x: x.T + 1,
    "ravel": lambda x: x.ravel() * 2,
    "reshape_part": lambda x: x.reshape(2, 4, 3, 4) + 1,
    "reshape_join": lambda x: x.reshape(4, 24) + 1,
    "reshape_odd": lambda x: x.reshape(6, 16) + 1,
    "reshape_ones": lambda x: x.reshape(1, 8, 1, 12, 1) + 1,
    "broadcast": lambda x: jnp.broadcast_to(x[:, None], (8, 4, 12)) * 2,
    "diagonal": jnp.diag,
    "lower": jnp.tril,
    "upper": lambda x: jnp.triu(x, 1),
    "trace": jnp.trace,
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (2, 5), (4, 6)),
    "dynamic_slice_rows": lambda x: lax.dynamic_slice(x, (jnp.int32(6), 0), (4, 12)),
    "dynamic_update": lambda x: lax.dynamic_update_slice(x, x[:2, :3], (3, 4)),
    "dynamic_update_columns": lambda x: lax.dynamic_update_slice(x, x[:, :3], (0, 4)),
    "take_rows": lambda x: x[IDS],
    "take_columns": lambda x: x[:, IDS],
    "take_elements": lambda x: x[IDS2[:, 0], IDS2[:, 1]],
    "take_along": lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    "set_rows": lambda x: x.at[IDS[:2]].set(7),
    "add_rows": lambda x: x.at[IDS].add(x),
    "add_columns": lambda x: x.at[:, IDS].add(x[:, :8]),
    "max_elements": lambda x: x.at[IDS2[:, 0], IDS2[:, 1]].max(0.5),
    "segment_sum": lambda x: jax.ops.segment_sum(x, IDS, 8),
    "one_hot": lambda x: jax.nn.one_hot(jnp.argmax(x, 1), 12) * x,
}

SUMS: Ops = {
    "sum_rows": lambda x: x.sum(0) + 1,
    "sum_columns": lambda x: x.sum(1) + 1,
    "sum_all": jnp.sum,
    "mean_var": lambda x: (x.mean(0), x.var(1), x.std()),
    "prod": lambda x: (x.prod(0), x.prod()),
    "max_min": lambda x: (x.max(1), x.min(0), x.max()),
    "any_all": lambda x: ((x > 0.9).any(0), (x > -2).all(1)),
    "argmax": lambda x: (x.argmax(0), x.argmax(1), x.argmax()),
    "argmin": lambda x: (x.argmin(0), jnp.round(x).argmin(1)),
    "count": lambda x: jnp.count_nonzero(x > 0, 1),
    "xor": lambda x: lax.reduce(
        lax.bitcast_convert_type(x, jnp.int32), jnp.int32(0), lax.bitwise_xor, (0,)
    ),
    "start_value": lambda x: lax.reduce(x, np.float32(3), lax.add, (0,)),
    "own_reducer": lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b + a * b, (1,)),
    "complex_sum": lambda x: (x + 1j * x).sum(0),
    "half_sum": lambda x: x.astype(jnp.bfloat16).sum(0, dtype=jnp.float32),
    "logsumexp": lambda x: jax.nn.logsumexp(x, 1),
    "softmax": lambda x: (jax.nn.softmax(x, 0), jax.nn.softmax(x, 1)),
    "cumsum": lambda x: (x.cumsum(0), x.cumsum(1), lax.cumsum(x, 0, reverse=True)),
    "cummax_cumprod": lambda x: (lax.cummax(x, 1), lax.cumprod(x, 0)),
    "sort": lambda x: (jnp.sort(x, 0), jnp.sort(x, 1)),
    "sort_pairs": lambda x: lax.sort((x, x * 2, -x), dimension=1, num_keys=1),
    "argsort": lambda x: jnp.argsort(x, 0),
    "top_k": lambda x: lax.top_k(x, 3),
    "median": lambda x: jnp.median(x, 1),
    "outer_products": lambda x: (x @ x.T, x.T @ x),
    "contract_all": lambda x: jnp.tensordot(x, x, 2),
    "norm": lambda x: jnp.linalg.norm(x, axis=0),
    "erf_gelu": lambda x: (lax.erf(x), jax.nn.gelu(x, approximate=False), jnp.tan(x)),
    "scan_rows": lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x),
    "scan_columns": lambda x: lax.associative_scan(jnp.add, x, axis=1),
    "window_sum": lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), "SAME"),
    "window_max": lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 1), (2, 1), "VALID"),
    "iota": lambda x: x + jnp.arange(8.0)[:, None] + lax.iota(jnp.int8, 12),
    "iota_whole": lambda x: jnp.arange(96.0).reshape(8, 12) * x,
    "table": lambda x: x * np.arange(96, dtype=np.float32).reshape(8, 12),
    "where": lambda x: jnp.where(x > 0, x, jnp.flip(x)),
    "clamp": lambda x: jnp.clip(x, -0.3, x.mean()),
    "gradient": jax.grad(lambda x: jnp.sum(jnp.tanh(x @ x.T) * x.cumsum(0)[:, :8])),
    "bits": lambda x: lax.bitcast_convert_type(x, jnp.uint8),
    "from_bits": lambda x: lax.bitcast_convert_type(
        lax.bitcast_convert_type(x, jnp.uint8), jnp.float32
    ),
}


def _conv(strides: int = 1, padding: Any = "SAME", **options: Any) -> Callable[..., Any]:
    return lambda x, k: lax.conv_general_dilated(x, k, (strides, strides), padding, **options)


def _conv_grads(x: Any, k: Any) -> Any:
    return jax.grad(lambda x, k: jnp.sum(jnp.sin(_conv()(x, k))), (0, 1))(x, k)


IMAGES: Ops = {
    "conv": _conv(),
    "conv_strided": _conv(2, "VALID"),
    "conv_dilated": _conv(1, ((1, 1), (2, 0)), lhs_dilation=(2, 2), rhs_dilation=(1, 2)),
    "conv_grads": _conv_grads,
    "max_pool": lambda x, k: lax.reduce_window(
        x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
    ),
    "max_pool_grad": jax.grad(
        lambda x, k: jnp.sum(
            lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") ** 2
        )
    ),
    "channels_last": lambda x, k: lax.conv_general_dilated(
        x.transpose(0, 2, 3, 1), k, (1, 1), "SAME", dimension_numbers=("NHWC", "OIHW", "NHWC")
    ),
}

GROUPED: Ops = {
    "conv_groups": _conv(feature_group_count=4),
    "conv_groups_grads": lambda x, k: jax.grad(
        lambda x, k: jnp.sum(jnp.sin(_conv(feature_group_count=4)(x, k))), (0, 1)
    )(x, k),
    "conv_batch_groups": lambda x, k: lax.conv_general_dilated(
        x, k[:, :2].repeat(4, 1), (1, 1), "SAME", batch_group_count=4
    ),
}

BATCHED: Ops = {
    "batched_product": lambda x, y: jnp.einsum("bij,bjk->bik", x, y),
    "batched_contraction": lambda x, y: jnp.einsum("bij,bjk->k", x, y),
    "mixed": lambda x, y: jnp.einsum("bij,cjk->bcik", x, y),
    "cholesky": lambda x, y: jnp.linalg.cholesky(x @ x.mT + 8 * jnp.eye(8)),
    "solve": lambda x, y: jax.scipy.linalg.solve_triangular(
        jnp.tril(x @ x.mT) + 8 * jnp.eye(8), x, lower=True
    ),
    "batched_gather": lambda x, y: jax.vmap(lambda a, i: a[i])(x, jnp.argmax(x, 1)),
    "batched_scatter": lambda x, y: jax.vmap(lambda a, i, u: a.at[i].add(u))(
        x, jnp.argmax(x, 1), x.swapaxes(1, 2)[:, :, :4].repeat(1, 1)
    ),
    "batched_slice": lambda x, y: jax.vmap(lambda a, i: lax.dynamic_slice(a, (i, 0), (2, 4)))(
        x, jnp.argmax(x[:, :, 0], 1)
    ),
    "batched_update": lambda x, y: jax.vmap(
        lambda a, i: lax.dynamic_update_slice(a, a[:1] * 3, (i, 0))
    )(x, jnp.argmax(x[:, :, 0], 1)),
    "case": lambda x, y: jax.vmap(lambda a: lax.cond(a.sum() > 0, jnp.sin, jnp.cos, a))(x),
    "while": lambda x, y: lax.while_loop(lambda c: jnp.abs(c).max() > 0.1, lambda c: c * 0.5, x),
    "product_int": lambda x, y: jnp.einsum(
        "bij,bjk->ik", jnp.round(x * 9).astype(jnp.int32), jnp.round(y * 9).astype(jnp.int32)
    ),
}


def _symmetric(x: Any) -> Any:
    return x + x.mT


def _rebuilt(x: Any) -> Any:
    values, vectors = jnp.linalg.eigh(_symmetric(x))
    return values, (vectors * values[..., None, :]) @ vectors.mT


FACTORISED: Ops = {
    "eigh": _rebuilt,
    "eigenvalues": lambda x: jnp.sort(jnp.abs(jnp.linalg.eigvals(x + 9 * jnp.eye(5)))),
    "lu": lambda x: lax.linalg.lu(x + 4 * jnp.eye(5)),
    "qr": lambda x: jnp.matmul(*jnp.linalg.qr(x)),
    "singular_values": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "schur": lambda x: jnp.sort(jnp.diagonal(lax.linalg.schur(_symmetric(x))[0], 0, -2, -1)),
    "solve": lambda x: jnp.linalg.solve(x + 4 * jnp.eye(5), x),
    "tridiagonal": lambda x: jnp.abs(lax.linalg.tridiagonal(_symmetric(x))[1]),
    "nearly_top": lambda x: lax.approx_max_k(x, 2, reduction_dimension=1),
}

SPECTRA: Ops = {
    "fft": lambda x: jnp.abs(jnp.fft.fft(x)),
    "fft2": lambda x: jnp.abs(jnp.fft.rfft2(x)),
}

UNEVEN: Ops = {
    "cut": lambda x: x[:5] * 2,
    "cut_and_sum": lambda x: x[1:].sum(0),
    "cut_and_multiply": lambda x: x[:6] @ x[:6].T,
    "grow": lambda x: jnp.concatenate([x, x[:3]])[::-1],
    "window": lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 1), (1, 1), "VALID") + 1,
    "odd_iota": lambda x: jnp.arange(7.0) + x[:7, 0],
    "odd_softmax": lambda x: jax.nn.softmax(x[:6].T.reshape(6, -1), 0),
}

TABLES: Ops = {
    "look_up": lambda t, i, u: t[i],
    "look_up_few": lambda t, i, u: t[i[:2]],
    "look_up_outside": lambda t, i, u: t.at[i * 3 - 5].get(mode="clip"),
    "look_up_fill": lambda t, i, u: t.at[i * 3].get(mode="fill", fill_value=9),
    "look_up_columns": lambda t, i, u: t[:, i],
    "look_up_elements": lambda t, i, u: t[i, i + 2],
    "look_up_one": lambda t, i, u: t[i[3]],
    "look_up_bool": lambda t, i, u: (t > 0)[i],
    "add": lambda t, i, u: t.at[i].add(u),
    "add_outside": lambda t, i, u: t.at[i * 3].add(u, mode="drop"),
    "add_elements": lambda t, i, u: t.at[i, i + 2].add(u[:, 0]),
    "set": lambda t, i, u: t.at[i[:3]].set(u[:3]),
    "set_columns": lambda t, i, u: t.at[:, i[4:]].set(u[:, :4]),
    "max": lambda t, i, u: t.at[i].max(u),
    "multiply": lambda t, i, u: t.at[i].multiply(u),
    "grad": jax.grad(lambda t, i, u: jnp.sum((t[i] - u) ** 2)),
    "grad_of_logits": jax.grad(
        lambda t, i, u: -jnp.take_along_axis(jax.nn.log_softmax(t @ u.T), i[:, None], 1).mean()
    ),
    "count": lambda t, i, u: jnp.bincount(i, length=8),
}

GROUPS = (
    OpGroup("moves", MOVES, (numbers(8, 12, seed=2),)),
    OpGroup("sums", SUMS, (numbers(8, 12, seed=3),)),
    OpGroup("images", IMAGES, (numbers(4, 4, 8, 8), numbers(8, 4, 3, 3))),
    OpGroup("grouped", GROUPED, (numbers(4, 8, 4, 4), numbers(8, 2, 3, 3))),
    OpGroup("batched", BATCHED, (numbers(4, 8, 4), numbers(4, 4, 8))),
    OpGroup("factorised", FACTORISED, (numbers(8, 5, 5, seed=8),)),
    OpGroup("spectra", SPECTRA, (numbers(4, 8, 4),), divided_only=True),
    OpGroup("tables", TABLES, (numbers(8, 12, seed=5), IDS, numbers(8, 12, seed=6))),
    OpGroup("uneven", UNEVEN, (numbers(8, 4, seed=4),)),
)

ROWS = [(group, shape, specs) for group in GROUPS for shape, specs in group.specs()]


def name_of(value: Any) -> str:
    """What tests call a row's parts."""
    if isinstance(value, OpGroup):
        return value.name
    if value and isinstance(value[0], P):
        return "+".join(str(tuple(spec)) for spec in value)
    return "x".join(map(str, value))


@cache
def on_one_device(group: OpGroup) -> Any:
    """What a device of the CPU backend computes."""
    with jax.default_device(jax.devices("cpu")[0]):
        return jax.device_get(jax.jit(group.f)(*group.args))


def jitted(group: OpGroup, shape: tuple[int, ...], specs: tuple[P, ...], devices: Any) -> Any:
    """The group's function, its arguments sharded over the devices."""
    count = math.prod(shape)
    mesh = Mesh(np.array(devices[:count]).reshape(shape), ("a", "b")[: len(shape)])
    shardings = tuple(NamedSharding(mesh, spec) for spec in specs)
    if count == 4:
        return jax.jit(group.f, in_shardings=shardings, keep_unused=True)

    # JAX shards arguments evenly; values inside a program may be sharded unevenly.
    def constrained(*args: Any) -> dict[str, Any]:
        return group.f(*map(lax.with_sharding_constraint, args, shardings))

    return jax.jit(constrained, keep_unused=True)
