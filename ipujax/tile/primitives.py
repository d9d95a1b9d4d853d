"""The JAX primitives of this package, and what they are on other platforms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching

from ipujax.api.custom.custom_calls import custom_call, register

#: Targets of the custom calls that the compiler gets: compiler/rules/tile.py.
PLACE_TARGET, VERTEX_TARGET = "ipu_tile_place", "ipu_tile_vertex"
Ints = tuple[int, ...]


# place: row rows[i] of an array on tile tiles[i] -------------------------------------------------

place_p = Primitive("ipu_tile_place")


def _placed(x: jax.Array, *, rows: Ints, tiles: Ints) -> jax.Array:
    return x if rows == tuple(range(x.shape[0])) else x[np.asarray(rows)]


def _place_transpose(ct: Any, x: Any, *, rows: Ints, tiles: Ints) -> tuple[Any]:
    shape = x.aval.shape
    if rows == tuple(range(shape[0])):
        return (ct,)
    return (jnp.zeros(shape, ct.dtype).at[np.asarray(rows)].add(ct),)


def _place_batch(values: Any, dims: Any, *, rows: Ints, tiles: Ints) -> tuple[Any, int]:
    x = jnp.moveaxis(values[0], dims[0], 1)
    return place_p.bind(x, rows=rows, tiles=tiles), 1


def _place_aval(x: Any, *, rows: Ints, tiles: Ints) -> Any:
    return x.update(shape=(len(rows), *x.shape[1:]))


place_p.def_abstract_eval(_place_aval)

ad.deflinear2(place_p, lambda ct, x, **parameters: _place_transpose(ct, x, **parameters))
batching.primitive_batchers[place_p] = _place_batch
register(
    place_p,
    _placed,
    lambda rows, tiles: custom_call(PLACE_TARGET, {"rows": rows, "tiles": tiles}),
)


# vertex: one vertex on each tile -----------------------------------------------------------------

vertex_p = Primitive("ipu_tile_vertex")
vertex_p.multiple_results = True


def _reference(*arrays: jax.Array, vertex: Any, tiles: Ints, attributes: Any) -> list[jax.Array]:
    return list(vertex.over_rows(attributes)(*arrays))


def _vertex_jvp(primals: Any, tangents: Any, **parameters: Any) -> tuple[Any, Any]:
    """Differentiates the reference, for which JAX has derivatives of any order."""
    moving = [type(tangent) is not ad.Zero for tangent in tangents]

    def of_moving(*given: Any) -> list[jax.Array]:
        rest = iter(given)
        operands = [next(rest) if moves else x for x, moves in zip(primals, moving, strict=True)]
        return _reference(*operands, **parameters)

    results = vertex_p.bind(*primals, **parameters)
    there = (list(compress(values, moving)) for values in (primals, tangents))
    changes = jax.jvp(of_moving, *there)[1]
    return results, [
        change if jnp.issubdtype(y.dtype, jnp.inexact) else ad.Zero(jax.typeof(y).to_tangent_aval())
        for change, y in zip(changes, results, strict=True)
    ]


def _vertex_batch(
    values: Sequence[jax.Array], dims: Any, *, vertex: Any, tiles: Ints, attributes: Any
) -> tuple[list[jax.Array], list[int]]:
    """More rows on each tile, one for each example."""
    size = next(x.shape[d] for x, d in zip(values, dims, strict=True) if d is not None)

    def rows(x: jax.Array, dim: int | None) -> jax.Array:
        if dim is None:
            x = jnp.broadcast_to(x[:, None], (x.shape[0], size, *x.shape[1:]))
        else:
            x = jnp.moveaxis(x, dim, 1)
        return x.reshape(-1, *x.shape[2:])

    many = tuple(tile for tile in tiles for _ in range(size))
    results = vertex_p.bind(
        *map(rows, values, dims), vertex=vertex, tiles=many, attributes=attributes
    )
    return [y.reshape(len(tiles), size, *y.shape[1:]) for y in results], [1] * len(results)


def _vertex_avals(*avals: Any, vertex: Any, tiles: Ints, attributes: Any) -> list[Any]:
    results = vertex.results(avals, attributes)
    return [avals[0].update(shape=(len(tiles), *y.shape), dtype=y.dtype) for y in results]


def _lower_vertex(vertex: Any, tiles: Ints, attributes: Any) -> Any:
    def lower(ctx: Any, *operands: Any, **_: Any) -> Any:
        config = vertex.config(ctx.avals_in, attributes) | {"tiles": tiles}
        return custom_call(VERTEX_TARGET, config)(ctx, *operands)

    return lower


vertex_p.def_abstract_eval(_vertex_avals)
ad.primitive_jvps[vertex_p] = _vertex_jvp
batching.primitive_batchers[vertex_p] = _vertex_batch
register(vertex_p, _reference, _lower_vertex)
