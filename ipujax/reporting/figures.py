"""The main figures of a report, for scripts: `ipujax report --json`."""

from __future__ import annotations

import json
from typing import Any

from ipujax.reporting.compare import Comparison
from ipujax.reporting.model import Group, Report


def figures(shown: Report | Comparison) -> str:
    """JSON of a report, or of two with their changes; `report.save` writes a whole one."""
    made = _of_two(shown) if isinstance(shown, Comparison) else _of_one(shown)
    return json.dumps(made, indent=2)


def _of_one(report: Report) -> dict[str, Any]:
    return {
        "name": report.name,
        "version": report.version,
        "machine": report.machine,
        "options": report.options,
        "date": report.date,
        "fits": report.fits,
        "cycles": report.cycles,
        "seconds": report.seconds,
        "fullest_ipu": report.fullest_ipu,
        "fullest_tile": report.ipus[report.fullest_ipu].fullest_tile,
        "fullest_tile_bytes": report.fullest_tile_bytes,
        "tile_capacity_bytes": report.tile_capacity_bytes,
        "code_bytes": report.code_bytes,
        "code_capacity_bytes": report.code_capacity_bytes,
        "headroom": report.headroom,
        "parts": report.parts,
        "always_live_bytes": report.always_live_bytes,
        "peak_live_bytes": report.peak_live_bytes,
        "num_ipus": len(report.ipus),
        "num_replicas": report.num_replicas,
        "collective_cycles": report.collective_cycles,
        "collective_share": report.collective_share,
        "num_steps": len(report.steps),
        "unknown_loops": report.unknown_loops,
        "collectives": [*map(_of_group, report.collectives)],
        "by": {grouping: [*map(_of_group, report.by(grouping))] for grouping in report.groupings},
        "modules": [*map(_of_group, report.modules())],
    }


def _of_group(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "stack": group.stack,
        "steps": group.steps,
        "cycles": group.cycles,
        "forward_cycles": group.forward_cycles,
        "backward_cycles": group.backward_cycles,
        "exchange_bytes": group.exchange_bytes,
        "link_bytes": group.link_bytes,
        "flops": group.flops,
        "utilisation": group.utilisation,
    }


def _of_two(comparison: Comparison) -> dict[str, Any]:
    return {
        "before": _of_one(comparison.before),
        "after": _of_one(comparison.after),
        "changes": {
            grouping: [
                {"name": c.name, "before": c.before, "after": c.after}
                for c in comparison.by(grouping)
                if c.difference
            ]
            for grouping in comparison.groupings
        },
    }
