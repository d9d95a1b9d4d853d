"""Stage 3: converts the MLIR module to the compiler's program, in its simplest form."""

from __future__ import annotations

from collections.abc import Callable

from ipujax.compiler.ingest import Request
from ipujax.compiler.ir import Program
from ipujax.compiler.ir.scopes import ScopedOptions
from ipujax.compiler.passes.activations import recognise_activations
from ipujax.compiler.passes.checks import add_checks
from ipujax.compiler.passes.combine import combine_collectives
from ipujax.compiler.passes.combine_shared import combine_shared
from ipujax.compiler.passes.complex import split_complex
from ipujax.compiler.passes.dot_algorithms import convert_for_algorithms
from ipujax.compiler.passes.fast_math import rewrite_fast
from ipujax.compiler.passes.high_products import split_high_products
from ipujax.compiler.passes.loops import drop_dead, simplify_loops
from ipujax.compiler.passes.narrow import narrow
from ipujax.compiler.passes.product_scopes import set_product_options
from ipujax.compiler.passes.refuse import (
    refuse_misread,
    refuse_unaddressable,
    refuse_unsupported,
)
from ipujax.compiler.passes.reshapes import sink_reshapes
from ipujax.compiler.passes.rounding import round_products
from ipujax.compiler.passes.share import share
from ipujax.compiler.passes.simplify import simplify
from ipujax.compiler.passes.small import widen_small
from ipujax.compiler.passes.transposed_products import swap_transposed_products
from ipujax.compiler.passes.unroll import unroll
from ipujax.compiler.passes.weight_updates import set_update_options
from ipujax.compiler.passes.wide_sums import widen_in_sums
from ipujax.compiler.passes.x64 import legalise_x64
from ipujax.compiler.reader import read_program
from ipujax.compiler.rounding_streams import set_rounding_streams
from ipujax.compiler.rules.registry import RULES

#: In order; each is program -> program.
PASSES: tuple[Callable[[Program], Program], ...] = (
    refuse_unaddressable,
    refuse_misread,
    set_update_options,
    set_product_options,
    split_high_products,
    convert_for_algorithms,
    legalise_x64,
    split_complex,
    add_checks,
    round_products,
    rewrite_fast,
    widen_small,
    narrow,
    simplify,
    recognise_activations,
    simplify_loops,
    unroll,
    sink_reshapes,
    share,
    widen_in_sums,
    swap_transposed_products,
    drop_dead,
    combine_shared,
    combine_collectives,
    refuse_unsupported,
)


def normalise(request: Request) -> Program:
    """Reads the module and runs all passes.

    Raises:
        UnsupportedDtypeError: an op computes in a dtype that an IPU does not have.
        UnsupportedOpError: names every op that has no rule.
    """
    program = read_program(request.module, request.name, RULES.__contains__, request.num_devices)
    program.options = ScopedOptions(request.options)
    for run in PASSES:
        program = run(program)
    set_rounding_streams(program, request.parameter_shardings, request.num_devices)
    return program
