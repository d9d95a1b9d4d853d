"""`check_vertex`: whether a vertex does what its reference says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipujax import tile
from ipujax.api.arguments import array, real_number
from ipujax.errors import ConfigError, MismatchError

WHERE = "ipu.testing.check_vertex"


def check_vertex(
    vertex: tile.Vertex, *arrays: Any, rtol: float = 1e-5, atol: float = 1e-6, **attributes: Any
) -> None:
    """Checks that a vertex does what its reference says: under `jit`, `vmap` and `grad`.

    Args:
        vertex: with a reference.
        arrays: arguments, `ipu.tile.TileArray`s or arrays of shape [n, ...], whose rows are put on
            the first n tiles.
        rtol: largest relative difference, of derivatives too.
        atol: largest absolute difference.
        attributes: of the vertex.
    Raises:
        ConfigError: the vertex has no reference.
        MismatchError: a result or a derivative differs; says which, and by how much.

    Example:
        >>> double = ipu.tile.create_vertex(
        ...     "Double",
        ...     source='''
        ...         #include <poplar/Vertex.hpp>
        ...         struct Double : poplar::Vertex {
        ...           poplar::InOut<poplar::Vector<float>> x;
        ...           bool compute() { for (auto& e : x) e *= 2; return true; }
        ...         };
        ...     ''',
        ...     inputs=["x"],
        ...     in_place=["x"],
        ...     reference=lambda x: 2 * x,
        ... )
        >>> ipu.testing.check_vertex(double, jnp.ones((3, 5)))
    """
    if not isinstance(vertex, tile.Vertex):
        raise ConfigError(
            f"[{WHERE}] needs a vertex; got {type(vertex).__name__}. Make one with "
            "ipu.tile.create_vertex."
        )
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not 0 <= real_number(tolerance) < float("inf"):
            raise ConfigError(
                f"[{WHERE}] needs {name} to be a finite number of at least 0; got {tolerance!r}. "
                "Pass such a number."
            )
    on_tiles = [_on_tiles(i, x) for i, x in enumerate(arrays)]
    if len({x.tiles for x in on_tiles}) != 1:
        got = ", ".join(str(list(x.tiles)) for x in on_tiles) or "no arrays"
        raise ConfigError(
            f"[{WHERE}] needs arrays on the same tiles; got {got}. Pass arrays with as many rows."
        )
    if vertex.reference is None:
        raise ConfigError(
            f"[ipu.testing.check_vertex] needs a vertex with a reference; got {vertex.name!r}, "
            "which has none. Pass reference= to create_vertex."
        )
    tiles = on_tiles[0].tiles
    values = [x.array for x in on_tiles]

    def run(*values: jax.Array) -> list[jax.Array]:
        placed = [tile.TileArray(x, tiles) for x in values]
        return [
            y.array
            for y in jax.tree.leaves(tile.map(vertex, *placed, **attributes), is_leaf=_is_array)
        ]

    reference = vertex.over_rows(tuple(attributes.items()))

    def compare(what: str, found: Callable[..., Any], wanted: Callable[..., Any], *of: Any) -> None:
        pairs = zip(
            jax.tree.leaves(jax.jit(found)(*of)), jax.tree.leaves(jax.jit(wanted)(*of)), strict=True
        )
        for i, (a, b) in enumerate(pairs):
            _compare(vertex.name, f"result {i} under {what}", a, b, rtol, atol)

    compare("jit", run, reference, *values)
    stacked = [jnp.stack([x, x[::-1]]) for x in values]
    compare("vmap", jax.vmap(run), jax.vmap(reference), *stacked)
    floats = tuple(i for i, x in enumerate(values) if jnp.issubdtype(x.dtype, jnp.floating))
    if floats:
        compare("grad", _gradient(run, floats), _gradient(reference, floats), *values)


def _on_tiles(i: int, x: Any) -> tile.TileArray:
    if isinstance(x, tile.TileArray):
        return x
    rows = array(WHERE, f"array {i}", x)
    if not rows.ndim:
        raise ConfigError(
            f"[{WHERE}] needs arrays of shape [n, ...]; got a number for array {i}. Pass a row "
            "for each tile."
        )
    return tile.put_sharded(rows, range(len(rows)))


def _is_array(x: Any) -> bool:
    return isinstance(x, tile.TileArray)


def _gradient(run: Callable[..., Any], argnums: tuple[int, ...]) -> Callable[..., Any]:
    """The gradient of a sum of all results with uneven weights."""

    def total(*values: jax.Array) -> jax.Array:
        sums = [
            jnp.sum(y.astype(jnp.float32) * jnp.linspace(0.5, 1.5, y.size).reshape(y.shape))
            for y in run(*values)
            if jnp.issubdtype(y.dtype, jnp.floating)
        ]
        return sum(sums, start=jnp.float32(0))

    return jax.grad(total, argnums)


def _compare(name: str, what: str, found: Any, wanted: Any, rtol: float, atol: float) -> None:
    a, b = np.asarray(found), np.asarray(wanted)
    if a.shape == b.shape and np.allclose(a, b, rtol, atol, equal_nan=True):
        return
    worst = float("nan")
    if a.shape == b.shape:
        worst = float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64))))
    raise MismatchError(
        f"[ipu.testing.check_vertex] needs {what} of {name!r} as its reference gives it, shape "
        f"{b.shape}; got shape {a.shape}, and a largest difference of {worst:.3g}. Compare the "
        "C++ with the reference.",
        max_error=worst,
    )
