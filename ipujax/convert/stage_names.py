"""Assigns the parts of a plan to stages by regular expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from ipujax import jax_compat
from ipujax.api.pipeline.arguments import Arguments
from ipujax.api.pipeline.plan import Plan, flat_function
from ipujax.convert.changes import Names
from ipujax.planner.parts import divide


def stages_by_name(
    plan: Plan, args: Sequence[Any], in_axes: Any, stages: Sequence[Names]
) -> dict[str, int]:
    """The stage of each part: the last that names one of its ops; else that of the part before.

    Args:
        plan: a plan of the function.
        args, in_axes: as in `ipu.plan_stages`.
        stages: names of the ops of each stage.
    """
    found: list[Any] = []
    jax.eval_shape(lambda *given: found.append(_micro_batch(given, in_axes)), *args)
    leaves, tree = jax.tree.flatten(found[0])
    jaxpr, captured = jax_compat.trace_avals(flat_function(plan.fun, tree, []), leaves)
    shared = [True] * len(captured) + plan.data.shared
    stage, named = 0, {}
    for part in divide(jaxpr, shared, plan.data.largest).parts:
        own = [_stage_of(operation.eqn, stages) for operation in part.operations]
        stage = max((index for index in own if index is not None), default=stage)
        named[part.name] = stage
    return named


def _micro_batch(args: Sequence[Any], in_axes: Any) -> Any:
    arguments = Arguments(tuple(args), in_axes)
    return arguments.unflatten(arguments.micro_avals)


def _stage_of(eqn: Any, stages: Sequence[Names]) -> int | None:
    name = f"{jax_compat.name_of(eqn)}/{eqn.primitive.name}".lstrip("/")
    matching = [index for index, names in enumerate(stages) if names.match(name)]
    return matching[-1] if matching else None
