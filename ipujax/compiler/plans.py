"""Plans of products and convolutions, kept from one program to the next.

A plan depends only on the product, its options and the target. A program that is compiled again,
as a step of evaluation or with other options, mostly has products that were planned before.
"""

from __future__ import annotations

from ipujax.compiler.rules import poplar as ipu

#: The most plans to keep for one machine; beyond that all are dropped.
MOST_PLANS = 4096

_kept: dict[str, ipu.PlanningCache] = {}


def plans_for(machine: str) -> ipu.PlanningCache:
    """The plans for the next program for a machine, such as "gc200"."""
    if not ipu.capabilities.shared_plans:
        return ipu.poplin.PlanningCache()
    kept = _kept.get(machine)
    if kept is None or len(kept) > MOST_PLANS:
        kept = _kept[machine] = ipu.poplin.PlanningCache()
    return kept
