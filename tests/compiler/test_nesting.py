"""Programs that nest deeper than anybody writes by hand: calls, composites, branches, loops."""

from __future__ import annotations

import sys

import jax
import numpy as np
import pytest

from ipujax import jax_compat
from ipujax.compiler import compile as pipeline
from ipujax.compiler import deep_stack

X = np.array([1.5, -2.0, 0.25, 8.0], np.float32)
F = "tensor<4xf32>"
CALL = f'"func.call"(%x) {{{{callee = @f{{0}}}}}} : ({F}) -> {F}'
COMPOSITE = CALL.replace("func.call", "stablehlo.composite").replace(
    "callee =", 'name = "mine.f{0}", decomposition ='
)


def called(count: int, call: str) -> str:
    """@f0 negates; every other one calls the one before and adds 1."""
    text = [f"func.func private @f0(%x: {F}) -> {F} {{ %0 = stablehlo.negate %x : {F}"]
    for k in range(1, count + 1):
        text.append(f"return %0 : {F} }}\nfunc.func private @f{k}(%x: {F}) -> {F} {{")
        text.append(f"%c = stablehlo.constant dense<1.0> : {F}\n%1 = {call.format(k - 1)}")
        text.append(f"%0 = stablehlo.add %1, %c : {F}")
    text.append(f"return %0 : {F} }}\nfunc.func @main(%x: {F}) -> {F} {{")
    text.append(f"%0 = {call.format(count)}\nreturn %0 : {F} }}")
    return "\n".join(text)


def nested(count: int, begin: str, end: str) -> str:
    """`begin`, `end`: of an op that gives %r from what its region makes of %v; then 1 is added."""
    inner = f"%r{count} = stablehlo.negate %x : {F}"
    head = [begin.format(k) for k in range(count)]
    tail = [
        f"%s{k} = stablehlo.add %r{k + 1}, %one : {F}\n{end.format(k)}"
        for k in reversed(range(count))
    ]
    return "\n".join(
        [
            f"func.func @main(%x: {F}) -> {F} {{",
            f"%one = stablehlo.constant dense<1.0> : {F}",
            "%i = stablehlo.constant dense<0> : tensor<i32>",
            "%j = stablehlo.constant dense<1> : tensor<i32>",
            "%e = stablehlo.slice %x [0:1] : (tensor<4xf32>) -> tensor<1xf32>",
            "%n = stablehlo.reshape %e : (tensor<1xf32>) -> tensor<f32>",
            "%p = stablehlo.is_finite %n : (tensor<f32>) -> tensor<i1>",
            *head,
            inner,
            *tail,
            f"return %r0 : {F} }}",
        ]
    )


def branches(count: int) -> str:
    end = (
        f"stablehlo.return %s{{0}} : {F} }}}}, {{{{ stablehlo.return %x : {F} }}}})"
        f" : (tensor<i1>) -> {F}"
    )
    return nested(count, '%r{0} = "stablehlo.if"(%p) ({{', end)


def loops(count: int) -> str:
    """Each runs once, which only the running program knows."""
    types = f"tensor<i32>, {F}"
    begin = (
        f"%k{{0}} = stablehlo.select %p, %i, %j : tensor<i1>, tensor<i32>\n"
        f'%q{{0}}, %r{{0}} = "stablehlo.while"(%k{{0}}, %x) ({{{{ ^bb0(%a{{0}}: tensor<i32>, '
        f"%b{{0}}: {F}):\n%c{{0}} = stablehlo.compare LT, %a{{0}}, %j : (tensor<i32>, tensor<i32>)"
        f" -> tensor<i1>\nstablehlo.return %c{{0}} : tensor<i1> }}}}, {{{{ ^bb0(%d{{0}}: "
        f"tensor<i32>, %f{{0}}: {F}):"
    )
    end = (
        "%t{0} = stablehlo.add %d{0}, %j : tensor<i32>\n"
        f"stablehlo.return %t{{0}}, %s{{0}} : {types} }}}}) : ({types}) -> ({types})"
    )
    return nested(count, begin, end)


def run(text: str) -> np.ndarray:
    return jax_compat.load_program(text, jax.devices("ipu")[0])([X])[0]


@pytest.mark.parametrize("count", [500, 2000])
@pytest.mark.parametrize("call", [CALL, COMPOSITE], ids=["calls", "composites"])
def test_functions_within_functions(call: str, count: int) -> None:
    np.testing.assert_allclose(run(called(count, call)), count - X, rtol=1e-5)


@pytest.mark.parametrize("kind", [branches, loops])
def test_regions_within_regions(kind) -> None:
    np.testing.assert_allclose(run(kind(300)), 300 - X, rtol=1e-5)


def test_many_ops_in_a_row() -> None:
    ops = "\n".join(
        f"%{k + 1} = stablehlo.{'add' if k % 2 else 'subtract'} %{k}, %x : {F}"
        for k in range(10_000)
    )
    text = f"func.func @main(%x: {F}) -> {F} {{ %0 = stablehlo.negate %x : {F}\n{ops}\n"
    np.testing.assert_allclose(run(f"{text}return %10000 : {F} }}"), -X)


def test_a_deep_compile_leaves_the_recursion_limit_as_it_was() -> None:
    before = sys.getrecursionlimit()
    run(called(600, CALL))
    assert sys.getrecursionlimit() == before


def test_too_deep_is_an_error_that_says_so(monkeypatch) -> None:
    monkeypatch.setattr(deep_stack, "MAX_FRAMES", 1500)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"UNIMPLEMENTED: \[compile\] needs"):
        run(called(2000, CALL))


def test_errors_of_a_deep_compile_are_those_of_any_other(monkeypatch) -> None:
    def fail() -> bytes:
        raise KeyError("as it was")

    with pytest.raises(KeyError, match="as it was"):
        deep_stack.on_deep_stack(fail)
    monkeypatch.setattr(pipeline, "lower", lambda program, request: [][0])
    with pytest.raises(jax.errors.JaxRuntimeError, match="got IndexError"):
        run(called(600, CALL))


def test_regions_nest_within_a_bound() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="more than 1000 loops and branches"):
        run(branches(1100))
