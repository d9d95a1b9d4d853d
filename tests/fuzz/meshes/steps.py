"""The steps of programs: how each is drawn, and what it does."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from tests.fuzz.meshes.place import MeshSpec, P, Place

Params = tuple[Any, ...]


class Typed(NamedTuple):
    """The type of a value; `spec` is empty where shardings are no part of it."""

    shape: tuple[int, ...]
    dtype: Any
    spec: PartitionSpec


class Row(NamedTuple):
    """One kind of step.

    Attributes:
        arity: operands.
        draw: (rng, types, mesh) -> parameters, or None where it cannot take such operands.
        run: (place, operands, parameters) -> the result.
        smooth: whether gradients of it depend on no ties.
    """

    arity: int
    draw: Callable[[random.Random, list[Typed], MeshSpec], Params | None]
    run: Callable[[Place, list[Any], Params], Any]
    smooth: bool = True


STEPS: dict[str, Row] = {}


def step(name: str, arity: int, draw: Any = None, smooth: bool = True) -> Callable[[Any], Any]:
    def register(run: Any) -> Any:
        STEPS[name] = Row(arity, draw or (lambda rng, types, mesh: ()), run, smooth)
        return run

    return register


def draw_spec(
    rng: random.Random, shape: tuple[int, ...], mesh: MeshSpec, special: bool
) -> PartitionSpec:
    """Each axis shards a dimension that it divides, or is unreduced or reduced, or is not used."""
    left = list(shape)
    dims: list[list[str]] = [[] for _ in shape]
    others: dict[str, set[str]] = {"unreduced": set(), "reduced": set()}
    for name in rng.sample(mesh.names, len(mesh.names)):
        size = mesh.size_of((name,))
        fits = [d for d, n in enumerate(left) if n % size == 0 and n > 1]
        if fits and rng.random() < 0.6:
            d = rng.choice(fits)
            left[d] //= size
            dims[d].append(name)
        elif special and rng.random() < 0.6:
            others[rng.choice(sorted(others))].add(name)
    return P(*(tuple(names) or None for names in dims), **others)


def axes_of(entry: Any) -> tuple[str, ...]:
    """The axes that shard one dimension."""
    if entry is None:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def entries(typed: Typed) -> list[tuple[str, ...]]:
    """The axes of each dimension."""
    found = [axes_of(entry) for entry in typed.spec.partitions]
    return found + [()] * (len(typed.shape) - len(found))


def _spec(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    return (draw_spec(rng, types[0].shape, mesh, mesh.explicit),)


def _alike(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    return () if types[0].shape == types[1].shape else None


def _dim(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    return (rng.randrange(len(types[0].shape)),) if types[0].shape else None


def _is_plain(typed: Typed) -> bool:
    return not typed.spec.unreduced and not typed.spec.reduced


# Elementwise -----------------------------------------------------------------------------------

_UNARY = {"tanh": jnp.tanh, "sin": jnp.sin, "negate": jnp.negative, "logistic": jax.nn.sigmoid}


@step("unary", 1, lambda rng, types, mesh: (rng.choice(sorted(_UNARY)),))
def unary(place: Place, values: list[Any], params: Params) -> Any:
    return _UNARY[params[0]](values[0])


@step("half", 1)
def half(place: Place, values: list[Any], params: Params) -> Any:
    return values[0] * 0.5


@step("add", 2, _alike)
def add(place: Place, values: list[Any], params: Params) -> Any:
    return values[0] + values[1]


@step("subtract", 2, _alike)
def subtract(place: Place, values: list[Any], params: Params) -> Any:
    return values[0] - values[1]


@step("multiply", 2, _alike)
def multiply(place: Place, values: list[Any], params: Params) -> Any:
    return values[0] * values[1]


@step("maximum", 2, _alike, smooth=False)
def maximum(place: Place, values: list[Any], params: Params) -> Any:
    return jnp.maximum(values[0], values[1])


def _selected(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    return (P(*types[0].spec.partitions),) if types[0].shape == types[1].shape else None


@step("select", 2, _selected)
def select(place: Place, values: list[Any], params: Params) -> Any:
    """By place: every third element is of the second."""
    shape = values[0].shape
    which = jnp.asarray(np.arange(int(np.prod(shape))).reshape(shape) % 3 == 0)
    return lax.select(place.reshard(which, params[0]), values[1], values[0])


@step("cast", 1)
def cast(place: Place, values: list[Any], params: Params) -> Any:
    return values[0].astype(jnp.bfloat16).astype(jnp.float32)


@step("barrier", 2)
def barrier(place: Place, values: list[Any], params: Params) -> Any:
    return lax.optimization_barrier(tuple(values))[0]


# Reductions and products -----------------------------------------------------------------------


def _reduction(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    (typed,) = types
    if not typed.shape:
        return None
    dim = rng.randrange(len(typed.shape))
    each = entries(typed)
    kept = [axes or None for d, axes in enumerate(each) if d != dim]
    parts = set(typed.spec.unreduced)
    if mesh.explicit and each[dim] and rng.random() < 0.6:
        parts |= set(each[dim])
    return dim, P(*kept, unreduced=parts, reduced=typed.spec.reduced)


@step("sum", 1, _reduction)
def sum_(place: Place, values: list[Any], params: Params) -> Any:
    dim, spec = params
    if place.mesh is None or not place.explicit:
        return jnp.sum(values[0], dim)
    return lax.reduce_sum(values[0], [dim], out_sharding=spec)


@step("max", 1, _dim, smooth=False)
def max_(place: Place, values: list[Any], params: Params) -> Any:
    return jnp.max(values[0], params[0])


@step("cumsum", 1, _dim)
def cumsum(place: Place, values: list[Any], params: Params) -> Any:
    return jnp.cumsum(values[0], params[0]) * 0.25


def _product(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    """Of the last dimension of the first and one of the second."""
    lhs, rhs = types
    if len(lhs.shape) < 1 or len(rhs.shape) < 1 or len(lhs.shape) + len(rhs.shape) > 5:
        return None
    pairs = [
        (i, k)
        for i, n in enumerate(lhs.shape)
        for k, m in enumerate(rhs.shape)
        if n == m and entries(lhs)[i] == entries(rhs)[k]
    ]
    if not pairs:
        return None
    i, k = rng.choice(pairs)
    used: set[str] = set()
    kept = []
    for d, axes in [*enumerate(entries(lhs))] + [(-1 - d, a) for d, a in enumerate(entries(rhs))]:
        if d in (i, -1 - k):
            continue
        kept.append(() if used & set(axes) else axes)
        used |= set(axes)
    parts = set(entries(lhs)[i]) if rng.random() < 0.6 else set()
    return i, k, P(*(axes or None for axes in kept), unreduced=parts)


@step("product", 2, _product)
def product(place: Place, values: list[Any], params: Params) -> Any:
    i, k, spec = params
    lhs, rhs = values
    first, second = "ijkl"[: lhs.ndim], "mnop"[: rhs.ndim]
    second = second[:k] + first[i] + second[k + 1 :]
    result = first.replace(first[i], "") + second.replace(first[i], "")
    scaled = lhs * (0.5 / np.sqrt(lhs.shape[i]))
    return jnp.einsum(f"{first},{second}->{result}", scaled, rhs, **place.out(spec))


# Shapes ----------------------------------------------------------------------------------------


def _order(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    rank = len(types[0].shape)
    return (tuple(rng.sample(range(rank), rank)),)


@step("transpose", 1, _order)
def transpose(place: Place, values: list[Any], params: Params) -> Any:
    return jnp.transpose(values[0], params[0])


def _reshape(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    """Merges two dimensions, or splits one in two."""
    (typed,) = types
    shape, each, spec = list(typed.shape), entries(typed), typed.spec
    if not shape:
        return None
    d = rng.randrange(len(shape))
    if d + 1 < len(shape) and rng.random() < 0.5:
        shape[d : d + 2] = [shape[d] * shape[d + 1]]
        each[d : d + 2] = [each[d]]
    elif shape[d] % 2 == 0 and len(shape) < 4:
        shape[d : d + 1] = [shape[d] // 2, 2]
        each[d : d + 1] = [each[d], ()]
    for d, axes in enumerate(each):
        if shape[d] % mesh.size_of(axes):
            each[d] = ()
    kept = P(*(x or None for x in each), unreduced=spec.unreduced, reduced=spec.reduced)
    return tuple(shape), kept


@step("reshape", 1, _reshape)
def reshape(place: Place, values: list[Any], params: Params) -> Any:
    return jnp.reshape(values[0], params[0], **place.out(params[1]))


@step("slice", 1, _dim)
def slice_(place: Place, values: list[Any], params: Params) -> Any:
    """The second half of a dimension."""
    (dim,) = params
    size = values[0].shape[dim]
    return lax.slice_in_dim(values[0], size // 2, size, axis=dim)


@step("concatenate", 2, lambda r, t, m: _dim(r, t, m) if _alike(r, t, m) is not None else None)
def concatenate(place: Place, values: list[Any], params: Params) -> Any:
    return jnp.concatenate(values, params[0])


@step("pad", 1, _dim)
def pad(place: Place, values: list[Any], params: Params) -> Any:
    """To twice its size, with zeros between the elements."""
    widths = [(0, 0, 0)] * values[0].ndim
    widths[params[0]] = (1, 0, 1)
    return lax.pad(values[0], np.float32(0), widths)


@step("update", 2, _alike)
def update(place: Place, values: list[Any], params: Params) -> Any:
    return lax.dynamic_update_slice(values[0], values[1] * 1, (0,) * values[0].ndim)


@step("expand", 1, _dim)
def expand(place: Place, values: list[Any], params: Params) -> Any:
    return jnp.expand_dims(values[0], params[0])


@step("sort", 1, _dim, smooth=False)
def sort(place: Place, values: list[Any], params: Params) -> Any:
    return jnp.sort(values[0], params[0])


# Shardings -------------------------------------------------------------------------------------


@step("reshard", 1, _spec)
def reshard(place: Place, values: list[Any], params: Params) -> Any:
    return place.reshard(values[0], params[0])


@step("mapped", 2, lambda rng, types, mesh: _own(rng, types, mesh))
def mapped(place: Place, values: list[Any], params: Params) -> Any:
    """Adds in a shard_map; its edges are as the operands are sharded."""
    ins, out = params
    f = lambda x, y: x + y  # noqa: E731
    return place.mapped(f, ins, out, f)(*values)


def _own(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    if types[0].shape != types[1].shape or types[0].spec != types[1].spec:
        return None
    spec = types[0].spec if mesh.explicit else draw_spec(rng, types[0].shape, mesh, False)
    return (spec, spec), spec


def _summed(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    """An unreduced operand, one of its axes, and whether blocks of the sum are kept."""
    (typed,) = types
    if not typed.spec.unreduced:
        return None
    axis = rng.choice(sorted(typed.spec.unreduced))
    left = typed.spec.unreduced - {axis}
    each = entries(typed)
    fits = [d for d, n in enumerate(typed.shape) if n % mesh.size_of((*each[d], axis)) == 0]
    dim = rng.choice(fits) if fits and rng.random() < 0.5 else None
    if dim is not None:
        each[dim] = (*each[dim], axis)
    kept = P(*(x or None for x in each), unreduced=left, reduced=typed.spec.reduced)
    return axis, dim, typed.spec, kept


@step("mapped_sum", 1, _summed)
def mapped_sum(place: Place, values: list[Any], params: Params) -> Any:
    axis, dim, spec, out = params

    def f(x: Any) -> Any:
        if dim is None:
            return lax.psum(x, axis)
        return lax.psum_scatter(x, axis, scatter_dimension=dim, tiled=True)

    return place.mapped(f, spec, out, lambda x: x)(values[0])


def _parts(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    """A dimension of the operand that is sharded, to be summed."""
    (typed,) = types
    each = entries(typed)
    dims = [d for d, axes in enumerate(each) if axes]
    if not dims or not _is_plain(typed):
        return None
    dim = rng.choice(dims)
    kept = [axes or None for d, axes in enumerate(each) if d != dim]
    parts = mesh.explicit and rng.random() < 0.6
    out = P(*kept, unreduced=set(each[dim])) if parts else P(*kept)
    return dim, each[dim], typed.spec, out


@step("mapped_parts", 1, _parts)
def mapped_parts(place: Place, values: list[Any], params: Params) -> Any:
    """Sums blocks in a shard_map, and leaves the sum of them to those who use it, or not."""
    dim, axes, spec, out = params

    def f(x: Any) -> Any:
        total = jnp.sum(x, dim) * 0.25
        return lax.pcast(total, axes, to="unreduced") if out.unreduced else lax.psum(total, axes)

    return place.mapped(f, spec, out, lambda x: jnp.sum(x, dim) * 0.25)(values[0])


def _gathered(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    (typed,) = types
    each = entries(typed)
    dims = [d for d, axes in enumerate(each) if len(axes) == 1]
    if not dims or not _is_plain(typed):
        return None
    dim = rng.choice(dims)
    (axis,) = each[dim]
    kept = P(*(x or None for d, x in enumerate(each) if d < dim), None, reduced={axis})
    rest = [x or None for d, x in enumerate(each) if d > dim]
    return dim, axis, typed.spec, P(*kept.partitions, *rest, reduced={axis})


@step("mapped_gather", 1, _gathered)
def mapped_gather(place: Place, values: list[Any], params: Params) -> Any:
    dim, axis, spec, out = params

    def f(x: Any) -> Any:
        return lax.all_gather(x, axis, axis=dim, tiled=True, to="reduced")

    return place.mapped(f, spec, out, lambda x: x)(values[0])


# Control flow ----------------------------------------------------------------------------------


@step("scan", 2, _alike)
def scan(place: Place, values: list[Any], params: Params) -> Any:
    """Adds the second operand three times."""
    total, y = values
    return lax.scan(lambda c, _: (c + y, None), total, None, length=3)[0]


@step("scan_stacked", 2, _alike)
def scan_stacked(place: Place, values: list[Any], params: Params) -> Any:
    total, y = values
    return lax.scan(lambda c, _: (c + y, c), total, None, length=2)[1]


@step("scan_product", 1, lambda rng, types, mesh: _scanned(rng, types, mesh))
def scan_product(place: Place, values: list[Any], params: Params) -> Any:
    """Products with itself, whose parts are summed after the loop or in it."""
    (spec,) = params
    (x,) = values
    n = x.shape[0]
    zeros = jnp.zeros((n, n), jnp.float32, **place.out(spec))

    def body(total: Any, k: Any) -> Any:
        scaled = x * (0.25 / np.sqrt(x.shape[1])) * (k + 1)
        return total + jnp.einsum("ij,kj->ik", scaled, x, **place.out(spec)), None

    total = lax.scan(body, zeros, jnp.arange(3, dtype=jnp.float32))[0]
    return place.reshard(total, P()) if spec.unreduced else total


def _scanned(rng: random.Random, types: list[Typed], mesh: MeshSpec) -> Params | None:
    (typed,) = types
    if len(typed.shape) != 2 or not _is_plain(typed) or entries(typed)[0]:
        return None
    return (P(None, None, unreduced=set(entries(typed)[1]) if rng.random() < 0.7 else set()),)


@step("cond", 2, _alike)
def cond(place: Place, values: list[Any], params: Params) -> Any:
    x, y = values
    return lax.cond(jnp.asarray(np.float32(1)) > 0, lambda: x + y, lambda: x)


@step("jit", 2, _alike)
def jit(place: Place, values: list[Any], params: Params) -> Any:
    return jax.jit(lambda x, y: x + y)(*values)


@step("checkpoint", 1)
def checkpoint(place: Place, values: list[Any], params: Params) -> Any:
    return jax.checkpoint(lambda x: jnp.sin(x) * jnp.tanh(x))(values[0])
