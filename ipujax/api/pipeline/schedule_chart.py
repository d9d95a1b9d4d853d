"""Draws which micro-batch each IPU works on in each time slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax

from ipujax import jax_compat
from ipujax.config import options as config
from ipujax.errors import PipelineError

if TYPE_CHECKING:
    from ipujax.compiler.timetable import Pass

WHERE = "ipu.schedule_chart"


def schedule_chart(fun: Callable[..., Any], *args: Any, max_slots: int = 20) -> str:
    """The schedule of the pipelines in a function, as the compiler made it.

    Each row is a stage on its IPU, each column a time slot. `F2` is the forward pass of micro-batch
    2, `R2` its recomputation, `B2` its backward pass. IPUs in one column work at the same time.

    Args:
        fun: a function that `jax.jit` takes, with a call of `ipu.pipeline` in it.
        args: its arguments: arrays, or `jax.ShapeDtypeStruct`s. Nothing is run.
        max_slots: number of slots to show; the middle of a longer pipeline is left out.
    Returns:
        Lines of text, a table for each pipeline.
    Raises:
        PipelineError: the function has no pipeline.

    Example:
        >>> first, last = ipu.stage(jnp.sin, ipu=0), ipu.stage(jnp.cos, ipu=0)
        >>> run = ipu.pipeline(lambda x: last(first(x)), micro_batches=2, schedule="sequential")
        >>> print(ipu.schedule_chart(run, jnp.ones(2)))
        slot        0   1   2   3
        IPU 0  sin  F0  -   F1  -
        IPU 0  cos  -   F0  -   F1
    """
    # Imported here: JAX imports this package while it looks for plugins.
    from ipujax.compiler.compile import placed_program
    from ipujax.compiler.timetable import timetables

    lowered = jax.jit(fun).lower(*args)
    code = jax_compat.serialize_artifact(lowered)
    platform = dict(config.platform_options(config.from_environment()))
    tables = timetables(placed_program(code, b"", platform))
    charts = [_chart(table, max_slots) for table in tables]
    if not charts:
        raise PipelineError(
            f"[{WHERE}] needs a function with a pipeline; got one without. "
            "Pass a function that calls what ipu.pipeline returned."
        )
    return "\n\n".join(charts)


def _chart(table: Sequence[Pass], max_slots: int) -> str:
    last = max(passed.slot for passed in table)
    slots: list[int | None] = list(range(last + 1))
    if len(slots) > max_slots:
        half = max_slots // 2
        slots = [*slots[:half], None, *slots[-half:]]
    cells: dict[tuple[int, str], dict[int | None, list[str]]] = {}
    for passed in table:
        row = cells.setdefault((passed.ipu, passed.stage), {})
        row.setdefault(passed.slot, []).append(f"{passed.kind}{passed.micro_batch}")
    lines = [["slot", "", *("" if slot is None else str(slot) for slot in slots)]]
    for (ipu, stage), row in cells.items():
        shown = ["..." if slot is None else "+".join(row.get(slot, "-")) for slot in slots]
        lines.append([f"IPU {ipu}", stage, *shown])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
