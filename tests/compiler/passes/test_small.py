"""Small types become wider ones, rounded where an op may leave their numbers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from jax import lax

from ipujax.compiler import ir
from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.passes.small import widen_small
from tests.compiler.programs import find, names, read

F8 = np.ones(4, ml_dtypes.float8_e4m3fn)
I4 = np.ones(4, ml_dtypes.int4)


def _widened(f, *args) -> ir.Program:
    return widen_small(read(f, *args))


def test_callers_see_their_own_types_as_bytes():
    program = _widened(lambda x, n: (n, x), F8, I4)
    assert [v.dtype for v in (*program.main.args, *program.main.results)] == ["ui8"] * 4
    seen = {0: ir.Seen("float8_e4m3fn", (4,)), 1: ir.Seen("int4", (4,))}
    assert program.seen_arguments == seen
    assert program.seen_results == {0: seen[1], 1: seen[0]}


def test_all_values_are_legal():
    program = _widened(lambda x, n: (x * x, lax.sort(x), n + n, x.astype(np.int32)), F8, I4)
    values = [v for op in ir.walk_ops(program.main) for v in (*op.operands, *op.results)]
    assert all(value.dtype in DTYPES for value in values)


def test_constants_without_elements_keep_their_shape():
    for array in (F8, I4):
        empty = np.zeros((0, 3), array.dtype)
        program = _widened(lambda empty=empty: lax.concatenate([empty, empty], 0))
        assert [v.const.shape for v in find(program, "concatenate").operands] == [(0, 3)] * 2


def test_moves_and_choices_are_not_rounded():
    assert "round_nearest_even" not in names(_widened(lambda x: lax.max(x[::-1], x), F8).main)
    assert names(_widened(lambda x: x * x, F8).main).count("round_nearest_even") == 1


def test_a_sum_is_rounded_once():
    program = _widened(lambda x: lax.reduce(x, np.zeros((), F8.dtype), lax.add, (0,)), F8)
    assert names(find(program, "reduce").regions[0]) == ["add"]
    assert names(program.main).count("round_nearest_even") == 1


def test_integers_are_wrapped_where_they_may_leave_their_range():
    plain = names(_widened(lambda n: n & n, I4).main)
    wrapped = names(_widened(lambda n: n + n, I4).main)
    assert wrapped.count("shift_left") == plain.count("shift_left") + 1
