"""Makes a report from the engine's profile of an executable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipujax._poplar import _poplar
from ipujax.annotations.layers import layer_of
from ipujax.annotations.origins import read_origin
from ipujax.reporting.model import (
    KINDS,
    Ipu,
    LivePoint,
    Node,
    Report,
    Slice,
    Step,
    Tensor,
    bits,
)

#: In the order of cpp/model/engine/image/Image.hpp.
NODE_KINDS = ("sequence", "step", "repeat", "while", "if", "switch", "error")


def read_profile(executable: bytes) -> Report:
    """The report of a sealed executable that was compiled with `ipu_profile`.

    Its origin is empty; `origin.with_origin` fills it in.
    """
    found: Mapping[str, Any] = _poplar.engine.profileImage(executable)
    count = len(found["ipus"])
    nodes = _nodes(found)
    slices = [_slice(row, count) for row in found["slices"].tolist()]
    return Report(
        name=found["name"],
        version="",
        machine="",
        options=(),
        date="",
        num_replicas=found["num_replicas"],
        clock_hz=found["clock_hz"],
        cycles=found["elapsed_cycles"],
        flops_per_cycle=found["half_flops_per_cycle"],
        tile_capacity_bytes=found["tile_capacity"],
        code_capacity_bytes=found["code_capacity"],
        always_live_bytes=found["always_live_bytes"],
        peak_live_bytes=found["peak_live_bytes"],
        assumed_trip_count=found["assumed_trip_count"],
        categories=tuple(found["categories"]),
        ipus=tuple(_ipu(each, len(found["categories"])) for each in found["ipus"]),
        steps=_steps(found, nodes, slices),
        nodes=nodes,
        slices=tuple(slices),
        live=tuple(LivePoint(*map(int, row)) for row in found["live"].tolist()),
        tensors=tuple(_tensor(row, found["categories"], count) for row in found["tensors"]),
    )


def _nodes(found: Mapping[str, Any]) -> tuple[Node, ...]:
    nodes = []
    for (kind, value, children), times in zip(found["nodes"], found["times"], strict=True):
        name = NODE_KINDS[kind]
        count = {"repeat": value, "while": found["assumed_trip_count"]}.get(name, 1)
        nodes.append(Node(name, int(count), times, tuple(children)))
    return tuple(nodes)


def _slice(row: list[float], count: int) -> Slice:
    node, ipus, times, begin, cycles, *by_kind = row
    return Slice(int(node), bits(ipus, count), times, begin, cycles, tuple(by_kind))


def _steps(found: Mapping[str, Any], nodes: tuple[Node, ...], slices: list[Slice]) -> Any:
    seen = {each.node: each for each in slices}
    steps = []
    for index, node in enumerate(nodes):
        if node.kind != "step":
            continue
        step = found["steps"][found["nodes"][index][1]]
        kernel, name, source, cost, operands, plan, is_collective = step
        scope, op = layer_of(name)
        origin = read_origin(source)
        when = seen.get(index)
        host = when.by_kind[KINDS.index("host")] if when else 0.0  # what it waits for
        link = 0.0 if host else cost["link_cycles"]
        cycles = (
            cost["compute_cycles"],
            cost["exchange_cycles"],
            cost["sync_cycles"],
            link,
            host,
        )
        most = sum(cycles) * found[_peak_of(operands)]
        steps.append(
            Step(
                node=index,
                times=node.times,
                name=name,
                op=op or kernel,
                scope=origin.layer or scope,
                source=origin.line,
                stack=origin.stack,
                direction=origin.direction,
                block=origin.block,
                stage=origin.stage,
                function=origin.function,
                kernel=kernel,
                kind=KINDS[cycles.index(max(cycles))],
                operands=", ".join(f"{dtype}[{_sizes(shape)}]" for dtype, shape in operands[:3]),
                plan=plan,
                is_collective=is_collective,
                ipus=when.ipus if when else (),
                compute_cycles=cycles[0],
                exchange_cycles=cycles[1],
                sync_cycles=cycles[2],
                link_cycles=cycles[3],
                host_cycles=cycles[4],
                exchange_bytes=cost["exchange_bytes"],
                link_bytes=cost["link_bytes"],
                flops=cost["flops"],
                temporary_bytes=cost["temporary_bytes"],
                utilisation=cost["flops"] / most if most else 0.0,
            )
        )
    return tuple(steps)


def _peak_of(operands: list[tuple[str, list[int]]]) -> str:
    half = bool(operands) and operands[0][0].lower() in {"half", "float16"}
    return "half_flops_per_cycle" if half else "float_flops_per_cycle"


def _sizes(shape: list[int]) -> str:
    return "x".join(map(str, shape))


def _ipu(found: Mapping[str, Any], categories: int) -> Ipu:
    flat = found["tile_bytes"]
    tiles = len(flat) // categories
    return Ipu(
        by_kind=(
            found["compute_cycles"],
            found["exchange_cycles"],
            0.0,
            found["link_cycles"],
            found["host_cycles"],
        ),
        idle_cycles=max(0.0, found["idle_cycles"]),  # rounding
        fullest_tile=found["fullest_tile"],
        fullest_tile_bytes=found["fullest_tile_bytes"],
        tile_bytes=tuple(tuple(flat[c * tiles : (c + 1) * tiles]) for c in range(categories)),
    )


def _tensor(row: Any, categories: list[str], count: int) -> Tensor:
    name, source, category, dtype, shape, size, peak, ipus, always = row
    origin = read_origin(source)
    return Tensor(
        name=name,
        scope=origin.layer or layer_of(name)[0],
        source=origin.line,
        category=categories[category],
        dtype=dtype,
        shape=tuple(shape),
        bytes=size,
        peak_tile_bytes=peak,
        ipus_at_peak=bits(ipus, count),
        always_live=always,
    )
