"""Warns once about options that a program's operations ignore on the IPU Model."""

from __future__ import annotations

from collections.abc import Iterator

from ipujax.compiler.ir import Op, Program, walk_ops
from ipujax.config.options import CompileConfig, warn_once
from ipujax.config.product_options import COLLECTIVES_IGNORE, PRODUCTS_IGNORE, names_of

#: Lookups and updates of rows at indices.
LOOKUPS = ("gather", "scatter")


def warn_of_unheeded(program: Program) -> None:
    """Warns of PopLibs and GCL options that have no effect, and of ops that ignore options."""
    _warn_of_libraries(program.options.program)
    for op in _ops(program):
        own = program.options.of(op)
        if own is not program.options.program:
            _warn_of_libraries(own)
        if op.name in LOOKUPS and _sets_proportion(own):
            warn_once(
                "[config] available_memory_proportion has no effect on lookups and updates of "
                "rows (gather, scatter): they have one plan on the IPU Model."
            )
        elif op.attrs.get("call_target_name") == "ipu_multi_conv" and len(op.results) > 1:
            warn_once(
                "[config] ipu.ops.multi_conv runs its convolutions one after the other on the IPU "
                "Model, each planned for all tiles; its options have no effect."
            )


def _ops(program: Program) -> Iterator[Op]:
    for root in (program.main, *program.functions):
        yield from walk_ops(root)


def _sets_proportion(options: CompileConfig) -> bool:
    default = CompileConfig.available_memory_proportion
    several = options.available_memory_proportions
    return bool(several) or options.available_memory_proportion != default


def _warn_of_libraries(options: CompileConfig) -> None:
    for option, ignored in (
        ("matmul_options", PRODUCTS_IGNORE),
        ("convolution_options", PRODUCTS_IGNORE),
        ("collective_options", COLLECTIVES_IGNORE),
    ):
        for name in sorted(names_of(getattr(options, option)) & ignored):
            warn_once("[config] %s: %s has no effect on the IPU Model.", option, name)
