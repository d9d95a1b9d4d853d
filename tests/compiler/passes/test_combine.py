"""Small collectives that wait for others: what is combined, what is not, and the numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from ipujax import jax_compat
from ipujax.compiler import ir
from ipujax.compiler.ir.scopes import ScopedOptions
from ipujax.compiler.ir.verify import check_structure
from ipujax.compiler.passes.combine import combine_collectives
from ipujax.compiler.reader import read_program
from ipujax.compiler.rules.registry import RULES
from ipujax.config.options import CompileConfig
from tests.compiler.rules.local_program import NUM_DEVICES, module_of, run
from tests.compiler.rules.test_collectives import (
    CONSECUTIVE,
    arrays_of,
    attributes_of,
    body_of,
    combined,
)

ALL = [[0, 1, 2, 3]]


def all_reduce(result: str, operand: str, groups: Any = None, op: str = "add") -> str:
    return (
        f'%{result} = "stablehlo.all_reduce"(%{operand}) <{{{attributes_of(groups or ALL)}}}> '
        f"{body_of(op, 'f32')} : (tensor<8xf32>) -> tensor<8xf32>"
    )


def reduce_scatter(result: str, operand: str) -> str:
    return (
        f'%{result} = "stablehlo.reduce_scatter"(%{operand}) '
        f"<{{{attributes_of(ALL)}, scatter_dimension = 0 : i64}}> "
        f"{body_of('add', 'f32')} : (tensor<8xf32>) -> tensor<2xf32>"
    )


def text_of(lines: list[str], results: list[str], shape: str = "8xf32") -> str:
    shown = ", ".join(f"%{r}" for r in results)
    types = ", ".join([f"tensor<{shape}>"] * len(results))
    body = "\n".join([*lines, f"return {shown} : {types}"])
    return module_of(["8xf32", "8xf32", "8xf32"], [shape] * len(results), body)


def operands_after(text: str, **limits: int) -> list[int]:
    """How many arrays each collective of the rewritten program takes, in order."""
    program = read_program(jax_compat.parse_module(text), "f", RULES.__contains__, NUM_DEVICES)
    program.options = ScopedOptions(replace(CompileConfig(), **limits))
    program = combine_collectives(program)
    check_structure(program, "combine")
    names = ("all_reduce", "reduce_scatter")
    return [len(op.operands) for op in ir.walk_ops(program.main) if op.name in names]


THREE = [all_reduce("a", "0"), all_reduce("b", "1"), all_reduce("c", "2")]


@pytest.mark.parametrize(
    ("limit", "want"), [(0, [1, 1, 1]), (31, [1, 1, 1]), (64, [2, 1]), (1000, [3])]
)
def test_as_many_wait_as_the_option_says(limit: int, want: list[int]) -> None:
    text = text_of(THREE, ["a", "b", "c"])
    assert operands_after(text, maximum_cross_replica_sum_buffer_size=limit) == want
    assert operands_after(text, maximum_reduce_scatter_buffer_size=1000) == [1, 1, 1]


def test_reduce_scatters_have_an_option_of_their_own() -> None:
    text = text_of([reduce_scatter("a", "0"), reduce_scatter("b", "1")], ["a", "b"], "2xf32")
    assert operands_after(text, maximum_reduce_scatter_buffer_size=64) == [2]
    assert operands_after(text, maximum_cross_replica_sum_buffer_size=64) == [1, 1]


def test_nobody_waits_for_its_own_result() -> None:
    lines = [all_reduce("a", "0"), all_reduce("b", "a"), all_reduce("c", "1")]
    text = text_of(lines, ["a", "b", "c"])
    assert operands_after(text, maximum_cross_replica_sum_buffer_size=1000) == [1, 2]


def test_other_groups_and_operators_stay_apart() -> None:
    lines = [
        all_reduce("a", "0"),
        all_reduce("b", "1", CONSECUTIVE),
        all_reduce("c", "2", op="maximum"),
        all_reduce("d", "2"),
    ]
    text = text_of(lines, ["a", "b", "c", "d"])
    assert operands_after(text, maximum_cross_replica_sum_buffer_size=1000) == [2, 1, 1]


def test_a_use_in_between_ends_the_wait() -> None:
    lines = [
        all_reduce("a", "0"),
        "%s = stablehlo.multiply %a, %1 : tensor<8xf32>",
        all_reduce("b", "1"),
        all_reduce("c", "s"),
    ]
    text = text_of(lines, ["a", "b", "c"])
    assert operands_after(text, maximum_cross_replica_sum_buffer_size=1000) == [1, 2]


def test_numbers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [arrays_of("f32", (8,), seed) for seed in range(3)]
    lines = [
        all_reduce("a", "0"),
        "%s = stablehlo.multiply %1, %1 : tensor<8xf32>",
        all_reduce("b", "s"),
        all_reduce("c", "2", CONSECUTIVE),
        reduce_scatter("d", "0"),
        reduce_scatter("e", "2"),
        "%de = stablehlo.concatenate %d, %e, %d, %e, dim = 0 : "
        "(tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<8xf32>",
    ]
    text = text_of(lines, ["a", "b", "c", "de"])
    for limit in ("0", "1000"):
        for kind in ("CROSS_REPLICA_SUM", "REDUCE_SCATTER"):
            monkeypatch.setenv(f"IPUJAX_MAXIMUM_{kind}_BUFFER_SIZE", limit)
        a, b, c, de = run(text, arrays, monkeypatch)
        sums = [combined("add", x, range(4)) for x in arrays]
        squares = combined("add", [x * x for x in arrays[1]], range(4))
        for device in range(NUM_DEVICES):
            np.testing.assert_array_equal(a[device], sums[0])
            np.testing.assert_array_equal(b[device], squares)
            group = CONSECUTIVE[device // 2]
            np.testing.assert_array_equal(c[device], combined("add", arrays[2], group))
            part = slice(2 * device, 2 * device + 2)
            want = np.concatenate([sums[0][part], sums[2][part]] * 2)
            np.testing.assert_array_equal(de[device], want)


def test_many_small_ones_that_stay_apart_are_said(caplog: pytest.LogCaptureFixture) -> None:
    names = [f"r{i}" for i in range(9)]
    text = text_of([all_reduce(name, "0") for name in names], names)
    assert operands_after(text, maximum_cross_replica_sum_buffer_size=32) == [1] * 9
    assert "9 small collectives (all_reduce)" in caplog.text
    assert "ipu_maximum_cross_replica_sum_buffer_size=1048576 to run them as 1" in caplog.text
    caplog.clear()
    assert operands_after(text, maximum_cross_replica_sum_buffer_size=1 << 20) == [9]
    few = text_of([all_reduce(name, "0") for name in names[:8]], names[:8])
    assert operands_after(few) == [1] * 8
    one_after_another = [all_reduce(a, b) for a, b in zip(names, ["0", *names], strict=False)]
    assert operands_after(text_of(one_after_another, names[-1:])) == [1] * 9
    assert not caplog.text


def test_options_of_one_function() -> None:
    options = {"ipu_maximum_cross_replica_sum_buffer_size": 64}
    x = jax.device_put(np.ones(3, np.float32), jax.devices("ipu")[0])
    np.testing.assert_array_equal(jax.jit(lambda x: x + 1, compiler_options=options)(x), 2)
    bad = {"ipu_maximum_cross_replica_sum_buffer_size": -1}
    with pytest.raises(Exception, match="whole number from 0"):
        jax.jit(lambda x: x + 2, compiler_options=bad)(x)
