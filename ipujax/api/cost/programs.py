"""Compiles StableHLO for a device that need not exist, and finds its cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipujax import jax_compat
from ipujax.api.cost.cost import AS_IT_IS, PARTS, Cost
from ipujax.config.options import PER_CALL_PREFIX, from_environment, platform_options
from ipujax.reporting.model import KINDS, Report


def report_of(code: bytes, options: Mapping[str, Any], ipus: int = 0) -> Report:
    """The report of a StableHLO portable artifact.

    Args:
        code: the artifact; it says for how many devices.
        options: compiler options.
        ipus: number of IPUs of a device; 0: as many as JAX's devices have.
    """
    # Imported here, because JAX imports this package while it looks for plugins.
    from ipujax.compiler.compile import compile_module
    from ipujax.reporting.origin import with_origin
    from ipujax.reporting.profile import read_profile

    platform = platform_options(from_environment())
    platform |= {"ipus_per_device": ipus} if ipus else {}
    wanted = {**AS_IT_IS, f"{PER_CALL_PREFIX}profile": True, **options}
    given = jax_compat.write_compile_options(wanted, jax_compat.num_devices_of(code))
    executable = compile_module(code, given, platform)
    return with_origin(read_profile(executable), str(platform["machine"]), options)


def cost_of(report: Report) -> Cost:
    """The numbers of a report."""
    ipu = report.ipus[report.fullest_ipu]
    parts = {
        name: tiles[ipu.fullest_tile]
        for name, tiles in zip(report.categories, ipu.tile_bytes, strict=True)
    }
    host = max(each.by_kind[KINDS.index("host")] for each in report.ipus)
    rate = report.seconds / report.cycles if report.cycles else 0.0
    return Cost(
        cycles=report.cycles,
        seconds=report.seconds,
        seconds_without_host=report.seconds - host * rate,
        host_bytes=0.0,
        fullest_tile_bytes=report.fullest_tile_bytes,
        tile_capacity_bytes=report.tile_capacity_bytes,
        code_bytes=report.code_bytes,
        code_capacity_bytes=report.code_capacity_bytes,
        fullest_ipu=report.fullest_ipu,
        num_replicas=report.num_replicas,
        collective_cycles=report.collective_cycles,
        collective_bytes=sum(group.link_bytes for group in report.collectives),
        parts={part: parts.get(part, 0) for part in PARTS},
        analysis={},
    )
