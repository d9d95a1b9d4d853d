"""Lowers `ipujax.tile`: rows on chosen tiles, and users' vertices on them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Op, Value
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import custom_call_rule
from ipujax.errors import PlacementError
from ipujax.host import codelet_sources


@custom_call_rule("ipu_tile_place", double=True, moves=True, complex="parts")
def place(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Row rows[i] of the operand, on tile tiles[i]."""
    config = _config(op)
    rows, tiles = config["rows"], _checked(builder, config["tiles"])
    (x,) = op.operands
    builder.on_tiles.add(op.results[0])
    if x.const is not None:
        return [_constant(builder, x, x.const[np.asarray(rows)], tiles, builder.debug(op))]
    tensor = builder.tensor(x)
    parts = [
        tensor.slice(row, row + 1).broadcast(times, 0) if times > 1 else tensor.slice(row, end)
        for row, end, times in _runs(rows)
    ]
    view = parts[0] if len(parts) == 1 else ipu.poplar.concat(parts, 0)
    return [_on_tiles(builder, view, tiles, builder.debug(op))]


@custom_call_rule("ipu_tile_vertex")
def vertex(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """One vertex for each row, on the row's tile."""
    builder.prints = True  # codelets may print
    config, debug, graph = _config(op), builder.debug(op), builder.graph
    tiles = _checked(builder, config["tiles"])
    fields: dict[str, ipu.Tensor] = {}
    for name, tensor in zip(config["fields"], builder.operands(op), strict=True):
        fields[name] = _on_tiles(builder, tensor, tiles, debug, name in config["in_place"])
    builder.on_tiles.update(op.results)
    written = op.results[len(config["in_place"]) :]
    for name, value in zip(config["outputs"], written, strict=True):
        fields[name] = _variable(builder, builder.type_of(value), value.shape, tiles, debug)
    _add_codelets(builder, config)
    compute_set = graph.addComputeSet(debug)
    for row, tile in enumerate(tiles):
        made = graph.addVertex(compute_set, config["vertex"])
        graph.setTileMapping(made, tile)
        for name, tensor in fields.items():
            _connect(graph, made[name], tensor[row])
        for name, number in config["attributes"].items():
            graph.setInitialValue(made[name], float(number))
        if config["cycles"] is not None:
            graph.setPerfEstimate(made, config["cycles"])
    builder.program.add(ipu.poplar.program.Execute(compute_set, debug))
    return [fields[name] for name in (*config["in_place"], *config["outputs"])]


def _connect(graph: ipu.Graph, field: ipu.FieldRef, row: ipu.Tensor) -> None:
    """Connects a row as it is, to scalars and lists of vectors, or flattened, to a vector."""
    try:
        graph.connect(field, row)
    except ipu.poplar.graph_connection_error:
        if len(row.shape) == 1:
            raise
        graph.connect(field, row.flatten())


def keeps_rows(op: Op) -> bool:
    """Whether the op puts the rows of its operand on tiles, each once and in their order."""
    if op.name != "custom_call" or op.attrs["call_target_name"] != "ipu_tile_place":
        return False
    return bool(_config(op)["rows"] == list(range(op.operands[0].shape[0])))


def argument(builder: Builder, op: Op) -> ipu.Tensor:
    """A variable for the operand of such an op, on its tiles."""
    (value,) = op.operands
    tiles = _checked(builder, _config(op)["tiles"])
    return _variable(builder, builder.type_of(value), value.shape, tiles, builder.debug(op))


def _config(op: Op) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(op.attrs["mhlo.backend_config"]["config"])
    return config


def _checked(builder: Builder, tiles: Sequence[int]) -> Sequence[int]:
    there = builder.graph.getTarget().getNumTiles()
    if max(tiles) >= there:
        raise PlacementError(
            f"[ipu.tile] needs tiles below {there}, which an IPU of this device has; got "
            f"{max(tiles)}. Use a tile of the device."
        )
    return tiles


def _add_codelets(builder: Builder, config: dict[str, Any]) -> None:
    """Adds the codelets once per program."""
    key = (config["source"], config["flags"])
    if key in builder.codelets:
        return
    text = codelet_sources.find(config["source"])
    if text is None:
        raise PlacementError(
            f"[ipu.tile] needs the C++ source of {config['vertex']!r} declared by this process; "
            "got its digest alone. Import the module that calls ipu.tile.create_vertex for it."
        )
    builder.whole_graph.addCodelets(text, config["flags"])
    builder.codelets.add(key)


def _constant(
    builder: Builder,
    value: Value,
    rows: np.ndarray,
    tiles: Sequence[int],
    debug: ipu.DebugContext,
) -> ipu.Tensor:
    """A constant's rows on their tiles, in place before the program runs."""
    data = np.ascontiguousarray(rows.astype(DTYPES[value.dtype].held_numpy, copy=False))
    tensor = builder.graph.addConstantBytes(
        builder.type_of(value), list(data.shape), data.tobytes(), debug
    )
    _map_rows(builder, tensor, tiles)
    return tensor


def _on_tiles(
    builder: Builder,
    tensor: ipu.Tensor,
    tiles: Sequence[int],
    debug: ipu.DebugContext,
    changes: bool = False,
) -> ipu.Tensor:
    """The tensor with its rows on these tiles; itself if they are there, unless it `changes`."""
    if not changes and _are_on_tiles(builder, tensor, tiles):
        return tensor
    variable = _variable(builder, tensor.elementType(), tensor.shape, tiles, debug)
    builder.copy(tensor, variable, debug)
    return variable


def _are_on_tiles(builder: Builder, tensor: ipu.Tensor, tiles: Sequence[int]) -> bool:
    size = tensor.numElements() // len(tiles)
    wanted: dict[int, list[tuple[int, int]]] = {}
    for i, tile in enumerate(tiles):
        runs = wanted.setdefault(tile, [])
        if runs and runs[-1][1] == i * size:
            runs[-1] = (runs[-1][0], (i + 1) * size)
        else:
            runs.append((i * size, (i + 1) * size))
    found = builder.graph.getTileMapping(tensor)
    return {tile: sorted(runs) for tile, runs in enumerate(found) if runs} == wanted


def _variable(
    builder: Builder,
    type_: ipu.Type,
    shape: Sequence[int],
    tiles: Sequence[int],
    debug: ipu.DebugContext,
) -> ipu.Tensor:
    variable = builder.graph.addVariable(type_, list(shape), debug)
    _map_rows(builder, variable, tiles)
    return variable


def _map_rows(builder: Builder, tensor: ipu.Tensor, tiles: Sequence[int]) -> None:
    begin = 0
    for tile, group in itertools.groupby(tiles):
        end = begin + len(list(group))
        builder.graph.setTileMapping(tensor.slice(begin, end), tile)
        begin = end


def _runs(rows: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Consecutive rows as (first, end, 1), and a row that is repeated as (row, row + 1, times)."""
    begin = 0
    while begin < len(rows):
        end = begin + 1
        step = rows[end] - rows[begin] if end < len(rows) else 1
        while step in (0, 1) and end < len(rows) and rows[end] - rows[end - 1] == step:
            end += 1
        yield rows[begin], rows[end - 1] + 1, 1 if step else end - begin
        begin = end
