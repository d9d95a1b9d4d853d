"""Arrays whose rows are on chosen tiles."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax import lax

from ipujax.api.arguments import array, whole_number
from ipujax.errors import PlacementError
from ipujax.tile.primitives import place_p


@functools.partial(jax.tree_util.register_dataclass, data_fields=["array"], meta_fields=["tiles"])
@dataclass(frozen=True)
class TileArray:
    """An array with each row on a chosen tile. A pytree: it passes through `jit`, loops and other
    transformations.

    `jax.numpy` treats it as the array that it holds, whose rows the compiler may then move;
    `ipu.tile.map` keeps results on the tiles.

    Attributes:
        array: [number of rows, ...]
        tiles: for each row the number of its tile, from 0. A tile may have several rows.
    """

    array: jax.Array
    tiles: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """The shape of one row."""
        return self.shape[1:]

    def reshape(self, *shape: int) -> TileArray:
        """The same elements on the same tiles, with rows of another shape."""
        return TileArray(self.array.reshape(len(self.tiles), *shape), self.tiles)

    def __jax_array__(self) -> jax.Array:
        return self.array

    def __len__(self) -> int:
        return len(self.tiles)


def put_sharded(x: Any, tiles: Iterable[int]) -> TileArray:
    """Puts each row of an array on a tile.

    Args:
        x: [n, ...]
        tiles: n tile numbers of the device's IPU, from 0. The rows of one tile may run on its six
            workers in parallel.
    Raises:
        PlacementError: there is not one number for each row, or one is not a tile number. Numbers
            beyond the device's tiles are refused when the program is compiled.

    Source: `tile_put_sharded` of Graphcore Research's tessellate-ipu, a public library.

    Example:
        >>> x = ipu.tile.put_sharded(jnp.arange(6.0).reshape(3, 2), tiles=(0, 5, 7))
        >>> x.tiles, x.tile_shape
        ((0, 5, 7), (2,))
    """
    rows = array("ipu.tile.put_sharded", "x", x)
    numbers = _tiles("put_sharded", tiles)
    if rows.ndim == 0 or rows.shape[0] != len(numbers):
        raise PlacementError(
            f"[ipu.tile.put_sharded] needs a tile for each row; got {len(numbers)} tiles for an "
            f"array of shape {rows.shape}. Pass as many tiles as the array has rows."
        )
    return _place(rows, range(len(numbers)), numbers)


def put_replicated(x: Any, tiles: Iterable[int]) -> TileArray:
    """Puts a copy of an array on each of some tiles.

    Args:
        x: [...]
        tiles: n tile numbers.
    Returns:
        [n, ...]
    Raises:
        PlacementError: a number is not a tile number.

    Example:
        >>> ipu.tile.put_replicated(jnp.ones(4), tiles=range(8)).shape
        (8, 4)
    """
    row = array("ipu.tile.put_replicated", "x", x)
    numbers = _tiles("put_replicated", tiles)
    return _place(row[None], [0] * len(numbers), numbers)


def gather(x: TileArray, rows: Sequence[int], tiles: Iterable[int]) -> TileArray:
    """Sends rows to other tiles.

    Args:
        x: [m, ...]
        rows: n row numbers of x; a row may be sent to several tiles.
        tiles: n tile numbers; row `rows[i]` of x goes to `tiles[i]`.
    Returns:
        [n, ...]
    Raises:
        PlacementError: a row does not exist, or the numbers of rows and tiles differ.

    Source: `tile_gather` of tessellate-ipu.

    Example:
        >>> x = ipu.tile.put_sharded(jnp.arange(3.0), tiles=(0, 1, 2))
        >>> ipu.tile.gather(x, [2, 2, 0], tiles=(5, 6, 7)).array.tolist()
        [2.0, 2.0, 0.0]
    """
    _check_array("gather", x)
    numbers = _tiles("gather", tiles)
    wanted = _numbers(rows)
    if len(wanted) != len(numbers) or not all(0 <= row < len(x) for row in wanted):
        raise PlacementError(
            f"[ipu.tile.gather] needs a row from 0 to {len(x) - 1} for each of {len(numbers)} "
            f"tiles; got {rows!r}. Pass as many rows as tiles."
        )
    return _place(x.array, wanted, numbers)


def barrier(*arrays: TileArray) -> tuple[TileArray, ...]:
    """Separates the operations before it from those after it.

    No operation on the results begins before all arguments are computed, and none is merged with an
    operation on the arguments.

    Source: `tile_data_barrier` of tessellate-ipu.

    Example:
        >>> x, y = (ipu.tile.put_replicated(jnp.float32(v), (0, 1)) for v in (1, 2))
        >>> x, y = ipu.tile.barrier(x, y)
    """
    for x in arrays:
        _check_array("barrier", x)
    passed = lax.optimization_barrier(tuple(x.array for x in arrays))
    return tuple(TileArray(a, x.tiles) for a, x in zip(passed, arrays, strict=True))


def _place(x: jax.Array, rows: Iterable[int], tiles: tuple[int, ...]) -> TileArray:
    return TileArray(place_p.bind(x, rows=tuple(rows), tiles=tiles), tiles)


def _tiles(name: str, tiles: Iterable[int]) -> tuple[int, ...]:
    numbers = _numbers(tiles)
    if not numbers or min(numbers) < 0:
        raise PlacementError(
            f"[ipu.tile.{name}] needs numbers of tiles, from 0; got {tiles!r}. Pass a range or a "
            "sequence of them."
        )
    return numbers


def _numbers(given: Any) -> tuple[int, ...]:
    """Whole numbers; -1 stands for anything else."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | jax.core.Tracer):
        return (-1,)
    numbers = [whole_number(value) for value in given]
    return tuple(-1 if number is None else number for number in numbers)


def _check_array(name: str, x: Any) -> None:
    if not isinstance(x, TileArray):
        raise PlacementError(
            f"[ipu.tile.{name}] needs arrays on tiles; got {type(x).__name__}. Put it on tiles "
            "with ipu.tile.put_sharded or ipu.tile.put_replicated."
        )
