"""Logs one line for each program that computes in 64 bits, which an IPU emulates."""

from __future__ import annotations

import logging
from typing import Any

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Op, Program, walk_ops
from ipujax.compiler.rules import poplar as ipu
from ipujax.errors import UnsupportedDtypeError
from ipujax.host.logs import logger_of

logger = logger_of("compiler")

#: The line is a warning from this share of a program's cycles on, else information.
WARN_SHARE = 0.1
#: The engine's names of 64-bit types, and its numbers for kinds of nodes.
_WIDE_TYPES = frozenset({"double", "longlong", "unsigned longlong"})
_STEP, _REPEAT, _IF, _SWITCH = 1, 2, 4, 5
#: 64-bit types that Poplar has; its libraries support the ops whose traits set integers64.
_MOVED = frozenset({"i64", "ui64"})
#: Lines already logged, so that compiling a program again does not repeat them.
_written: set[tuple[str, str, str]] = set()


def first_wide_op(program: Program) -> tuple[Op, str] | None:
    """The first op that computes in 64 bits, and its dtype; views are free and do not count."""
    for op in walk_ops(program.main):
        if op.traits.view:
            continue
        for value in (*op.results, *op.operands):
            if value.dtype in DTYPES and DTYPES[value.dtype].wide:
                return op, DTYPES[value.dtype].jax_name
    return None


def refuse_wide(program: Program) -> None:
    """Refuses 64-bit arithmetic in a build against a Poplar SDK, which has no 64-bit floats, and
    only copies and casts of 64-bit integers.

    Raises:
        UnsupportedDtypeError: the program computes in 64 bits.
    """
    for op in walk_ops(program.main):
        for value in (*op.operands, *op.results):
            if value.dtype in _MOVED and _only_moves(op):
                continue
            if value.dtype in DTYPES and DTYPES[value.dtype].wide:
                raise _too_wide(value.dtype, op.name, op.source.line)
    for value in (*program.main.args, *program.main.results):
        if value.dtype in DTYPES and DTYPES[value.dtype].wide and value.dtype not in _MOVED:
            raise _too_wide(value.dtype, "an argument or result", "")


def _only_moves(op: Op) -> bool:
    has_it = op.traits.integers64 or op.name == "custom_call"
    return has_it and not (op.name == "convert" and "f64" in _dtypes(op))


def _dtypes(op: Op) -> set[str]:
    return {value.dtype for value in (*op.operands, *op.results)}


def _too_wide(dtype: str, what: str, line: str) -> UnsupportedDtypeError:
    where = f" (at {line})" if line else ""
    return UnsupportedDtypeError(
        "[x64] needs types of 32 bits or fewer in a build against a Poplar SDK, but for 64-bit "
        f"integers that are moved, cast or known to fit 32 bits; got {DTYPES[dtype].jax_name} in "
        f"{what}{where}. "
        'Set ipu_x64="demote", or use the IPU Model\'s own build, which emulates it.'
    )


def log_emulation(name: str, found: tuple[Op, str] | None, executable: bytes) -> None:
    """Logs the first emulated op, the cost of all emulation, and how to avoid it."""
    if found is None:
        return
    op, dtype = found
    key = (name, op.name, op.source.line)
    if key in _written:
        return
    _written.add(key)
    share = emulated_share(ipu.engine.inspectImage(executable))
    where = f" (at {op.source.line})" if op.source.line else ""
    logger.log(
        logging.WARNING if share >= WARN_SHARE else logging.INFO,
        "[x64] %s computes in 64 bits, which an IPU emulates: the first op is %s in %s%s; about "
        "%.0f%% of the program's cycles are 64-bit steps. Use 32-bit dtypes, or set "
        'ipu_x64="demote" (IPUJAX_X64=demote) to compute in 32 bits.',
        name,
        op.name,
        dtype,
        where,
        100 * share,
    )


def emulated_share(image: dict[str, Any]) -> float:
    """The share of the program's cycles spent in steps on 64-bit elements.

    Args:
        image: the result of `inspectImage`; only the most expensive branch counts.
    """
    steps, nodes = image["steps"], image["nodes"]
    cycles: list[tuple[float, float]] = [(0.0, 0.0)] * len(nodes)
    for index in reversed(range(len(nodes))):  # children come after their parents
        kind, value, children = nodes[index]
        inner = [cycles[child] for child in children]
        if kind == _STEP:
            cycles[index] = _of_step(steps[value])
        elif kind in (_IF, _SWITCH):
            cycles[index] = max(inner, default=(0.0, 0.0))
        else:
            times = value if kind == _REPEAT else 1
            cycles[index] = (
                times * sum(total for total, _ in inner),
                times * sum(wide for _, wide in inner),
            )
    total, wide = cycles[0] if cycles else (0.0, 0.0)
    return wide / total if total else 0.0


def _of_step(step: dict[str, Any]) -> tuple[float, float]:
    """The step's cycles, and how many of them are emulated."""
    total = step["cost"]["cycles"]
    types = {operand["type"] for operand in step["operands"]}
    return total, total if types & _WIDE_TYPES else 0.0
