"""Complex numbers become pairs of real ones."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ipujax.compiler import ir
from ipujax.compiler.passes.complex import split_complex
from ipujax.errors import UnsupportedOpError
from tests.compiler.programs import find, names, normal, read

Z = np.ones((2, 3), np.complex64)


def _split(f, *args) -> ir.Program:
    return split_complex(read(f, *args))


def test_a_product_is_four_real_ones():
    program = normal(lambda z: z * z, Z)
    assert names(program.main).count("multiply") == 4
    assert [v.shape for v in program.main.args] == [(2, 3, 2)]
    assert [(v.shape, v.dtype) for v in program.main.results] == [((2, 3, 2), "f32")]


def test_callers_see_complex_arrays():
    program = _split(lambda x, z: (z, x, z.real), np.ones(3, np.float32), Z)
    assert program.seen_arguments == {1: ir.Seen("complex64", (2, 3))}
    assert program.seen_results == {0: ir.Seen("complex64", (2, 3))}


def test_programs_without_complex_numbers_stay():
    program = read(lambda x: x + 1, np.ones(3, np.float32))
    before = ir.to_text(program)
    assert ir.to_text(split_complex(program)) == before


def test_carries_of_loops_are_two():
    program = _split(lambda z: lax.fori_loop(0, 3, lambda i, c: c * 1j, z), Z)
    loop = find(program, "while")
    assert [r.shape for r in loop.results].count((2, 3)) == 2
    assert len(loop.regions[1].args) == len(loop.regions[1].results) == len(loop.operands)


def test_comparators_take_the_pairs_of_each_operand_together():
    sort = find(_split(lambda z: lax.sort((z, z.real), num_keys=1), Z), "sort")
    assert len(sort.operands) == len(sort.results) == 3
    assert len(sort.regions[0].args) == 6


def test_sums_are_two_sums():
    program = normal(lambda z: z.sum(0), Z)
    reduces = [op for op in program.main.ops if op.name == "reduce"]
    assert [len(op.results) for op in reduces] == [1, 1]


@pytest.mark.parametrize(
    ("f", "operands", "results"),
    [
        (lambda z: jnp.fft.fft(z), (True,), (True,)),
        (lambda z: jnp.fft.rfft(z.real), (False,), (True,)),
        (lambda z: jnp.fft.irfft(z, 4), (True,), (False,)),
    ],
)
def test_rules_are_told_which_values_are_two(f, operands, results):
    fft = find(_split(f, Z), "fft")
    assert fft.attrs["complex_operands"] == operands
    assert fft.attrs["complex_results"] == results
    assert len(fft.operands) == sum(1 + flag for flag in operands)
    assert len(fft.results) == sum(1 + flag for flag in results)
    assert all(v.dtype == "f32" for v in (*fft.operands, *fft.results))


def test_constants_are_read_exactly():
    numbers = np.array([1.1 + 2j, complex(np.inf, -0.0), complex(np.nan, 1e-40)], np.complex64)
    many = (np.arange(200) * (1 - 0.3j)).astype(np.complex64)
    program = read(lambda z: (z + numbers, z.sum() + many, z * np.complex64(2j)), Z[0])
    operands = [value for op in program.main.ops for value in op.operands]
    consts = {value.shape: value.const for value in operands if value.const is not None}
    assert consts[(3,)].tobytes() == numbers.tobytes()
    assert consts[(200,)].tobytes() == many.tobytes()


def test_what_has_no_order_is_refused_by_name():
    program = read(lambda z: z == z, Z)
    find(program, "compare").attrs["comparison_direction"] = "LT"
    with pytest.raises(
        UnsupportedOpError, match="compare in complex64: complex numbers have no order for LT"
    ):
        split_complex(program)
