"""Gives products and convolutions the options that are set for their layer or source line.

Before, with matmul_options={"scopes": {"layer1": o}}:
  %1 = dot_general(%0, %w)   at jit(f)/layer1/dot_general
After:
  %1 = dot_general(%0, %w) {matmul_options=o}
Then products of equal shapes in other layers differ from it, and are not outlined with it.
"""

from __future__ import annotations

from dataclasses import replace

from ipujax.compiler.ir import Op, Program, walk_ops
from ipujax.compiler.sources import layer_at
from ipujax.config.options import PER_CALL_PREFIX
from ipujax.config.product_options import has_scopes, in_scope

#: The option of each op.
OPTIONS = {"dot_general": "matmul_options", "convolution": "convolution_options"}


def set_product_options(program: Program) -> Program:
    """Sets the options of ops that have some for their layer or line."""
    for op in walk_ops(program.main):
        if op.name in OPTIONS:
            _set(op, getattr(program.options.of(op), OPTIONS[op.name]), OPTIONS[op.name])
    return program


def _set(op: Op, text: str, name: str) -> None:
    if text and has_scopes(text):
        own = in_scope(text, layer_at(op.source), op.source.line)
        options = {**dict(op.source.options), PER_CALL_PREFIX + name: own}
        op.source = replace(op.source, options=tuple(sorted(options.items())))
