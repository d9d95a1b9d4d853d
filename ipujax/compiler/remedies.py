"""Options that save memory without changing results: for any program, and for one program."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ipujax.annotations.layers import is_backward, matches
from ipujax.config.options import PER_CALL_PREFIX, CompileConfig
from ipujax.config.product_options import SCOPES, as_text
from ipujax.reporting.model import Report, Step

#: Options by name, and their other values.
Changes = Mapping[str, Any]
PROPORTIONS = (0.3, 0.1, 0.03)
ORDERS = ("program", "liveness")
#: Dimensions of the largest product that are divided, and into how many slices.
SERIAL = (("outChanSplit", 4), ("inChanSplit", 4), ("outChanSplit", 16))
#: A product is worth slices if its temporaries take this part of a tile.
LARGE_PRODUCT = 0.05
#: A pattern may match one extra layer for each of this many intended layers.
MORE = 8
#: Characters with a special meaning in a pattern or a list.
_SPECIAL = re.compile(r"[,*?]")


def text_of(changes: Changes) -> str:
    """The options as a user sets them."""
    return ", ".join(f"{PER_CALL_PREFIX}{name}={value}" for name, value in changes.items())


def by_order(options: CompileConfig) -> list[Changes]:
    """Other orders of ops: `auto` chose by the bytes of all tiles, not of the fullest one."""
    return [{"schedule": order} for order in ORDERS] if options.schedule == "auto" else []


def without_cost(options: CompileConfig) -> list[Changes]:
    """Options that cost little time in any program."""
    outline = {} if options.outline == "auto" else {"outline": "auto"}
    recompute = {} if options.allow_recompute else {"allow_recompute": True}
    both = {**outline, **recompute}
    tried = (outline, recompute, both if outline and recompute else {})
    return [changes for changes in tried if changes]


def by_report(report: Report, options: CompileConfig) -> list[Changes]:
    """Slices for the largest product, and recomputation of layers that are live at the peak."""
    found = [*_serial(report, options)] if options.partials_type == "float" else []
    return [*found, *_recomputed(report, options)]


def by_proportion(options: CompileConfig) -> list[Changes]:
    """Less memory for all products, alone and with the options that cost little time."""
    if options.partials_type != "float":  # sums of half partials depend on the plan
        return []
    *_, most = [{}, *without_cost(options)]
    smaller = [
        {"available_memory_proportion": proportion}
        for proportion in PROPORTIONS
        if proportion < options.available_memory_proportion
    ]
    return [{**base, **changes} for base in (({}, most) if most else ({},)) for changes in smaller]


def _serial(report: Report, options: CompileConfig) -> Iterator[Changes]:
    """Slices for the product with the most temporaries, and for those like it in other layers."""
    products = [step for step in report.steps if step.plan and (step.scope or step.source)]
    largest = max(products, key=lambda step: step.temporary_bytes, default=None)
    least = LARGE_PRODUCT * report.tile_capacity_bytes
    if largest is None or largest.temporary_bytes < least or _SPECIAL.search(largest.scope):
        return
    alike = {
        step.scope
        for step in products
        if step.scope
        and step.kernel == largest.kernel
        and _without_numbers(step.scope) == _without_numbers(largest.scope)
    }
    known = {step.scope for step in report.steps}
    scope = _pattern(sorted(alike), known) if largest.scope else largest.source
    scope = largest.scope if "," in scope else scope
    for dimension, parts in SERIAL:
        yield _sliced(largest, scope, {dimension: {"serial": parts}}, options)


def _sliced(product: Step, scope: str, partition: Any, options: CompileConfig) -> Changes:
    """The user's options with constraints for the plans of some layers."""
    is_convolution = product.kernel.endswith("convolution")
    name = "convolution_options" if is_convolution else "matmul_options"
    given = json.loads(getattr(options, name) or "{}")
    scopes = given.get(SCOPES, {})
    own = {**scopes.get(scope, {}), "planConstraints": {"0": {"partition": partition}}}
    return {name: as_text({**given, SCOPES: {**scopes, scope: own}})}


def _recomputed(report: Report, options: CompileConfig) -> Iterator[Changes]:
    """The layers with the most bytes at the peak: half of them, and all."""
    if options.recompute_layers:
        return
    layers = _layers_at_peak(report)
    known = {step.scope for step in report.steps}
    half = (len(layers) + 1) // 2
    for count in (half, len(layers)) if half < len(layers) else (half,):
        if count:
            yield {"recompute_layers": _pattern(layers[:count], known)}


def _layers_at_peak(report: Report) -> list[str]:
    """Layers whose forward values are live at the peak of the fullest tile, the largest first."""
    sizes: dict[tuple[str, ...], int] = {}
    for tensor in report.tensors:
        layer = tensor.scope
        waits = tensor.peak_tile_bytes and not tensor.always_live and not is_backward(tensor.name)
        if waits and layer and not _SPECIAL.search(layer):
            path = tuple(layer.split("/"))
            sizes[path] = sizes.get(path, 0) + tensor.peak_tile_bytes
    depth = next((d for d in range(1, 9) if len({path[:d] for path in sizes}) > 1), 1)
    layers: dict[str, int] = {}
    for path, size in sizes.items():
        name = "/".join(path[:depth])
        layers[name] = layers.get(name, 0) + size
    return sorted(layers, key=lambda name: (-layers[name], name))


def _without_numbers(name: str) -> str:
    return re.sub(r"\d+", "*", name)


def _pattern(layers: list[str], known: set[str]) -> str:
    """The layers as patterns if these match few others, or else as a list."""
    patterns = {_without_numbers(layer) for layer in layers}
    depth = layers[0].count("/") + 1
    matched = {
        prefix
        for prefix in ("/".join(layer.split("/")[:depth]) for layer in known)
        if any(matches(prefix, pattern) for pattern in patterns)
    }
    names = patterns if len(matched) <= len(layers) + max(1, len(layers) // MORE) else layers
    return ",".join(sorted(names))
