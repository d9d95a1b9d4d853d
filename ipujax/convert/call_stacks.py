"""Calls functions from the places in a program's locations, so that traced operations keep them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from ipujax import jax_compat
from ipujax.annotations.frames import Frame

T = TypeVar("T")

#: Largest line and column that are rebuilt; files may have any numbers.
_LARGEST = 1 << 20

# Operations get the lines of the converted program, not those of this package.
jax_compat.hide_frames(str(Path(__file__).parent))


def call_from(frames: Sequence[Frame], fun: Callable[[], T]) -> T:
    """Calls a function as these frames would, so that JAX records them.

    Args:
        frames: innermost first.
        fun: without arguments.
    """
    for frame in frames:
        if _can_be_rebuilt(frame):
            fun = partial(_caller(frame), fun)
    return fun()


def _can_be_rebuilt(frame: Frame) -> bool:
    numbers = (frame.line, frame.end_line, frame.column, frame.end_column)
    is_in_order = frame.line >= 1 and (frame.end_line < 0 or frame.end_line >= frame.line)
    return is_in_order and max(numbers) < _LARGEST and "\0" not in frame.file + frame.function


@lru_cache(maxsize=1 << 12)
def _caller(frame: Frame) -> Callable[[Callable[[], Any]], Any]:
    """A function at the frame's place, with its name, that calls its argument."""
    module = ast.parse("def caller(fun): return fun()")
    for node in ast.walk(module):
        if isinstance(node, ast.expr | ast.stmt | ast.arg):
            node.lineno, node.end_lineno = frame.line, max(frame.line, frame.end_line)
            node.col_offset, node.end_col_offset = max(0, frame.column), max(0, frame.end_column)
    made: dict[str, Any] = {}
    exec(compile(module, frame.file, "exec"), made)
    caller = made["caller"]
    name = frame.function or "<module>"
    caller.__code__ = caller.__code__.replace(
        co_name=name.rpartition(".")[2] or name, co_qualname=name
    )
    found: Callable[[Callable[[], Any]], Any] = caller
    return found
