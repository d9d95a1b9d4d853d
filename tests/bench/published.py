"""The model's cycles compared with published measurements on IPUs (cpp/model/tests/data).

The elementwise measurements are Poplar programs, as the published ones were: the same elements on
the same tiles. The published figures include the time of the cycle counter, so it is added to ours.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator

from tests.bench import source_tree
from tests.bench.row import Row

BOUND = 0.05
#: The machine of each measurement: `add` on Bow, `scaled_add` on an Mk2.
_MACHINES = {"add": "bow", "scaled_add": "gc200"}


def points(name: str) -> list[dict[str, str]]:
    """The rows of a table of cpp/model/tests/data."""
    with (source_tree.ROOT / "cpp" / "model" / "tests" / "data" / name).open() as file:
        return list(csv.DictReader(file))


def elementwise_cycles(op: str, elements_per_tile: int, num_tiles: int) -> float:
    """Cycles of the slowest tile for one float32 `add` or `scaled_add`, the counter's included."""
    from ipujax._poplar import _poplar

    poplar, popops = _poplar.poplar, _poplar.popops
    graph = poplar.Graph(poplar.createTarget(_MACHINES[op], 1, num_tiles))
    tensors = []
    for name in "ab":
        debug = poplar.DebugContext(name, "")
        tensor = graph.addVariable(poplar.FLOAT, [num_tiles * elements_per_tile], debug)
        for tile in range(num_tiles):
            begin = tile * elements_per_tile
            graph.setTileMapping(tensor.slice([begin], [begin + elements_per_tile]), tile)
        tensors.append(tensor)
    program = poplar.program.Sequence()
    if op == "scaled_add":
        popops.scaledAddTo(graph, tensors[0], tensors[1], 2.5, program)
    else:
        first, second = (popops.expr.PlaceHolder(i) for i in (1, 2))
        _poplar.popx.map(graph, [popops.expr.Add(first, second)], tensors, program)
    image, _ = _poplar.engine.buildImage(graph, program, _poplar.engine.Signature("published"))
    cycles = _poplar.engine.inspectImage(image)["cost"]["compute_cycles"]
    return float(cycles + popops.timerCycles)


def amp_cycles(num_rows: int) -> float:
    """Cycles of one vertex that multiplies [num_rows, 16] with [16, 16] in float16."""
    from ipujax._poplar import _poplar

    return float(_poplar.poplin.ampVertexCycles(num_rows))


def _row(name: str, pairs: list[tuple[str, float, float]]) -> Row:
    """The largest relative error over `(what, counted, measured)`."""
    errors = [abs(counted / measured - 1) for _, counted, measured in pairs]
    worst = errors.index(max(errors))
    what, counted, measured = pairs[worst]
    detail = f"worst of {len(pairs)}: {what}, {counted:.0f} counted, {measured:.0f} measured"
    return Row(name, errors[worst], BOUND, detail)


def _elementwise_row(op: str) -> Row:
    pairs = []
    for point in points("elementwise_points.csv"):
        if point["op"] == op:
            each, tiles = int(point["elements_per_tile"]), int(point["num_tiles"])
            counted = elementwise_cycles(op, each, tiles)
            pairs.append((f"{each} x {tiles} tiles", counted, float(point["measured_cycles"])))
    return _row(f"cycles: {op} float32", pairs)


def _amp_row() -> Row:
    pairs = []
    for point in points("amp_points.csv"):
        rows = int(point["N_rows"])
        pairs.append((f"{rows} rows", amp_cycles(rows), float(point["derived_tile_cycles"])))
    return _row("cycles: AMP float16", pairs)


#: One row for each kind of measurement, by name.
ROWS: dict[str, Callable[[], Row]] = {
    "cycles: AMP float16": _amp_row,
    "cycles: scaled_add float32": lambda: _elementwise_row("scaled_add"),
    "cycles: add float32": lambda: _elementwise_row("add"),
}


def rows(wanted: str) -> Iterator[Row]:
    """The rows whose lower-case name contains `wanted`."""
    for name, make in ROWS.items():
        if wanted in name.lower():
            yield make()
