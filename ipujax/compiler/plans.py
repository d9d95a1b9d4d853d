"""Plans of products and convolutions, kept from one program to the next.

A plan follows from the product, its options and the target alone. A program that is compiled again,
as a step of evaluation or with other options, mostly has products that were planned before.
"""

from __future__ import annotations

from ipujax.compiler.rules import poplar as ipu

#: Plans of one machine that are kept; beyond that all are forgotten.
MOST_PLANS = 4096

_kept: dict[str, ipu.PlanningCache] = {}


def plans_for(machine: str) -> ipu.PlanningCache:
    """What the next program for a machine, such as "gc200", is planned with."""
    if not ipu.capabilities.shared_plans:
        return ipu.poplin.PlanningCache()
    kept = _kept.get(machine)
    if kept is None or len(kept) > MOST_PLANS:
        kept = _kept[machine] = ipu.poplin.PlanningCache()
    return kept
