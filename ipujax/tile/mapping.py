"""`map`: a function or a vertex on each tile."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipujax.api.arguments import array
from ipujax.api.arguments import function as a_function
from ipujax.errors import ConfigError, PlacementError
from ipujax.tile.arrays import TileArray, _check_array, put_replicated, put_sharded
from ipujax.tile.primitives import vertex_p
from ipujax.tile.vertex import Attributes, Vertex

#: Fields of vertices have up to 64 bits.
LARGEST = 2**64 - 1


def map(function: Callable[..., Any] | Vertex | Any, *arrays: TileArray, **attributes: Any) -> Any:
    """Applies a function, a JAX primitive or a vertex to the rows of arrays, each on its tile.

    Args:
        function: of arrays of `tile_shape`: a vertex of `ipu.tile.create_vertex`, a function of
            arrays such as `jnp.add`, or a primitive such as `jax.lax.add_p`.
        arrays: all on the same tiles.
        attributes: keyword arguments of the function, or parameters of the primitive. For a vertex,
            the values of its fields: numbers, which are compiled into the program.
    Returns:
        the result as a TileArray on the same tiles, or a list of them if there are several. (A
        function's pytree of results keeps its form.)
    Raises:
        PlacementError: an argument is not a TileArray, or they are on different tiles.
        ConfigError: the vertex has other fields, or a codelet cannot have a dtype.

    Source: `tile_map` of tessellate-ipu.

    Example:
        >>> x = ipu.tile.put_sharded(jnp.ones((4, 8)), tiles=range(4))
        >>> ipu.tile.map(jnp.sum, x).array.tolist()
        [8.0, 8.0, 8.0, 8.0]
    """
    for x in arrays:
        _check_array("map", x)
    tiles = {x.tiles for x in arrays}
    if len(tiles) != 1:
        lengths = ", ".join(str(len(x.tiles)) for x in arrays) or "no arrays"
        raise PlacementError(
            "[ipu.tile.map] needs arrays on the same tiles; got different ones (numbers of rows: "
            f"{lengths}). Move them with ipu.tile.gather."
        )
    if isinstance(function, Vertex):
        return _map_vertex(function, arrays, attributes)
    apply = a_function("ipu.tile.map", "its argument", getattr(function, "bind", function))
    values = jax.vmap(lambda *rows: apply(*rows, **attributes))(*(x.array for x in arrays))
    return jax.tree.map(lambda y: put_sharded(y, arrays[0].tiles), values)


def _map_vertex(vertex: Vertex, arrays: tuple[TileArray, ...], attributes: dict[str, Any]) -> Any:
    if len(arrays) != len(vertex.inputs):
        raise ConfigError(
            f"[ipu.tile.map] needs arrays for {', '.join(vertex.inputs)} of {vertex.name!r}; got "
            f"{len(arrays)} arrays. Pass one for each input."
        )
    numbers = tuple((name, _number(vertex, name, value)) for name, value in attributes.items())
    tiles = arrays[0].tiles
    avals = [jax.ShapeDtypeStruct(x.tile_shape, x.dtype) for x in arrays]
    constants = [
        put_replicated(value, tiles).array for value in vertex.constants_of(avals, numbers)
    ]
    run = _differentiable(vertex, tiles, numbers)
    results = [TileArray(y, tiles) for y in run(*(x.array for x in arrays), *constants)]
    return results[0] if len(results) == 1 else results


def _differentiable(
    vertex: Vertex, tiles: tuple[int, ...], attributes: Attributes
) -> Callable[..., list[jax.Array]]:
    """The vertex on whole operands with its vjp, if any; constants have no derivatives."""

    def run(*operands: jax.Array) -> list[jax.Array]:
        return list(vertex_p.bind(*operands, vertex=vertex, tiles=tiles, attributes=attributes))

    if vertex.vjp is None:
        return run
    given = vertex.vjp

    def forward(*operands: jax.Array) -> Any:
        return run(*operands), operands

    def backward(operands: Any, cotangents: Any) -> Any:
        inputs = [TileArray(x, tiles) for x in operands[: len(vertex.inputs)]]
        seeds = [TileArray(_dense(ct), tiles) for ct in cotangents]
        found = given(*inputs, *seeds, **dict(attributes))
        found = found if isinstance(found, (list, tuple)) else [found]
        arrays = _cotangents(vertex, found, [x.array for x in inputs])
        return (*arrays, *(None for _ in vertex.constants))

    with_vjp = jax.custom_vjp(run)
    with_vjp.defvjp(forward, backward)
    return with_vjp


def _dense(cotangent: Any) -> jax.Array:
    """Zeros stand for cotangents of integers."""
    if cotangent.dtype == jax.dtypes.float0:
        return jnp.zeros(cotangent.shape, jnp.float32)
    return jnp.asarray(cotangent)


def _cotangents(vertex: Vertex, found: Any, inputs: list[jax.Array]) -> list[Any]:
    """What vjp returned, as arrays; None stands for zeros."""
    if len(found) != len(inputs):
        raise ConfigError(
            f"[ipu.tile.map] needs {len(inputs)} results of vjp of {vertex.name!r}, one for each "
            f"input; got {len(found)}. Return None for inputs without a derivative."
        )
    made: list[Any] = []
    for name, x, value in zip(vertex.inputs, inputs, found, strict=True):
        if value is None or not jnp.issubdtype(x.dtype, jnp.floating):
            made.append(None)
            continue
        ct = array("ipu.tile.map", f"the cotangent of {name!r} from vjp", value)
        if ct.shape != x.shape:
            raise ConfigError(
                f"[ipu.tile.map] needs a cotangent of {name!r} of shape {list(x.shape)} from vjp "
                f"of {vertex.name!r}; got {list(ct.shape)}. Return one of the input's shape."
            )
        made.append(ct.astype(x.dtype))
    return made


def _number(vertex: Vertex, name: str, value: Any) -> int | float | bool:
    if isinstance(value, (builtins.int, builtins.float, builtins.bool, np.generic)):
        number = value.item() if isinstance(value, np.generic) else value
        if isinstance(number, int) and abs(number) > LARGEST:
            raise ConfigError(
                f"[ipu.tile.map] needs a number that field {name!r} of {vertex.name!r} can hold; "
                f"got {number}. Pass a smaller one."
            )
        if isinstance(number, (int, float)):
            return number
    raise ConfigError(
        f"[ipu.tile.map] needs a number for field {name!r} of {vertex.name!r}; got "
        f"{type(value).__name__}. Pass values that change as arrays, on tiles."
    )
