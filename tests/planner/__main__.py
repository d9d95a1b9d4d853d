"""Compares plans with the best of all cuts: `python -m tests.planner [models] [first seed]`.

Compiles a pipeline for every contiguous cut of small random models on 2 to 4 IPUs. Prints one JSON
object for each model: the cycles of the plan, of the tuned plan and of the best cut.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from dataclasses import replace
from typing import Any

os.environ.setdefault("JAX_IPU_IPUS_PER_DEVICE", "4")  # before JAX starts

import ipujax as ipu
from tests.planner.models import Model, random_model

#: Models with more cuts than this are cut for fewer IPUs.
MOST_CUTS = 60


def plan_of(model: Model, ipus: int) -> ipu.Plan:
    return ipu.plan_stages(
        model.loss,
        (model.weights, model.batch),
        ipus=(ipus, ipus),
        micro_batches=model.micro_batches,
        reduction="mean",
    )


def all_cuts(plan: ipu.Plan, ipus: int) -> list[ipu.Plan]:
    """The plan with every contiguous cut."""
    names = list(plan.parts)
    found = []
    for ends in itertools.combinations(range(1, len(names)), ipus - 1):
        places = [sum(end <= part for end in ends) for part in range(len(names))]
        parts = dict(zip(names, places, strict=True))
        data = replace(plan.data, parts=parts, device_mapping=list(range(ipus)))
        found.append(ipu.Plan(plan.fun, data))
    return found


def number_of_cuts(parts: int, ipus: int) -> int:
    return sum(1 for _ in itertools.combinations(range(1, parts), ipus - 1))


def compare(seed: int) -> dict[str, Any]:
    model = random_model(seed)
    args = (model.weights, model.batch)
    ipus = 2 + seed // 4 % 3
    plan = plan_of(model, ipus)
    while ipus > 2 and number_of_cuts(len(plan.parts), ipus) > MOST_CUTS:
        ipus -= 1
        plan = plan_of(model, ipus)
    cuts = all_cuts(plan, ipus)
    best = min(cut.measure(args)["cycles"] for cut in cuts)
    return {
        "seed": seed,
        "model": model.kind,
        "parts": len(plan.parts),
        "ipus": ipus,
        "cuts": len(cuts),
        "best": best,
        "plan": plan.measure(args)["cycles"] / best,
        "tuned": plan.tune(args).measure(args)["cycles"] / best,
    }


def main(count: int, first: int) -> None:
    for seed in range(first, first + count):
        print(json.dumps(compare(seed)), flush=True)


if __name__ == "__main__":
    main(*map(int, [*sys.argv[1:], *("10", "0")[len(sys.argv) - 1 :]]))
