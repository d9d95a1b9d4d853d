"""Custom calls that a program makes by hand: as their signature says, or refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from jax.errors import JaxRuntimeError

from ipujax.compiler.rules.call_signatures import SIGNATURES, Form, parsed
from ipujax.compiler.rules.registry import CUSTOM_CALLS
from ipujax.jax_compat import load_program

SIZES = {"m": 4, "n": 3, "k": 3, "n-1": 2, "p": 3, "q": 3}
#: Of float32 and complex64, with the forms that agree with LAPACK's letter of the type.
SHORT = [
    (target, form)
    for target, forms in SIGNATURES.items()
    if not target.startswith(("lapack_d", "lapack_z"))
    for form in forms
    if form.operands[0][0] != ("R" if target.startswith("lapack_c") else "C")
]
#: Made by ipujax alone.
OWN = sorted(t for t in CUSTOM_CALLS if t.startswith("ipu_") and t not in SIGNATURES)

Call = tuple[list[np.ndarray], list[jax.ShapeDtypeStruct], dict[str, Any]]


def made(target: str, form: Form, batch: tuple[int, ...] = ()) -> Call:
    """A call of that form; matrices of equal sizes are far from singular."""
    first = form.operands[0][0]
    is_complex = first == "C" or (first == "T" and target.startswith("lapack_c"))
    whole = np.complex64 if is_complex else np.float32
    types = {"T": whole, "R": np.float32, "C": np.complex64, "i32": np.int32}

    def shape(sizes: list[str]) -> tuple[int, ...]:
        return (*batch, *(SIZES[name] for name in sizes))

    operands = [np.zeros(shape(sizes), types[dtype]) for dtype, sizes in form.operands]
    for x in operands:
        if x.ndim - len(batch) == 2:
            x[...] = np.eye(*x.shape[-2:])
        elif x.dtype != np.int32:
            x[...] = 0.5
    results = [jax.ShapeDtypeStruct(shape(sizes), types[dtype]) for dtype, sizes in form.results]
    letters = {name: each[0] for name, each in form.parameters.items()}
    if letters.get("sort") == "S":
        letters["sort"] = "N"
    config = {
        name: letter == "1" if letter in "01" else np.uint8(ord(letter))
        for name, letter in letters.items()
    }
    return operands, results, config


def run(target: str, call: Call) -> list[jax.Array]:
    operands, results, config = call
    function = jax.jit(lambda *xs: jax.ffi.ffi_call(target, results)(*xs, **config))
    return jax.block_until_ready(function(*operands))


@pytest.mark.parametrize(("target", "form"), SHORT, ids=lambda each: getattr(each, "text", each))
def test_a_call_as_its_signature_says_runs(target: str, form: Form):
    call = made(target, form, batch=(2,))
    found = run(target, call)
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in call[1]]


def wrong(call: Call) -> Iterator[tuple[str, Call]]:
    """Calls with one thing changed."""
    operands, results, config = call
    yield "no operands", ([], results, config)
    yield "an operand more", ([*operands, operands[0]], results, config)
    yield "a result more", (operands, [*results, results[0]], config)
    yield "a result fewer", (operands, results[:-1] or results * 2, config)
    for k, x in enumerate(operands):
        for what, other in (("rank", x[0]), ("dtype", x.real.astype(np.int16))):
            yield (
                f"operand {k} of another {what}",
                (
                    [*operands[:k], other, *operands[k + 1 :]],
                    results,
                    config,
                ),
            )
    for k, x in enumerate(results):
        other = jax.ShapeDtypeStruct((*x.shape, 1), x.dtype)
        yield f"result {k} of another rank", (operands, [*results[:k], other], config)
    for name in config:
        less = {key: value for key, value in config.items() if key != name}
        yield f"no {name}", (operands, results, less)
        yield f"another {name}", (operands, results, {**less, name: np.uint8(ord("?"))})
        yield f"{name} as text", (operands, results, {**less, name: "A"})


@pytest.mark.parametrize("target", ["Qr", "ipu_lu_pivots_to_permutation", "lapack_cgeev_ffi"])
def test_other_calls_are_refused_by_name(target: str):
    _refuses(target)


@pytest.mark.parametrize("stem", sorted({t[8:] for t in SIGNATURES if t.startswith("lapack_s")}))
def test_other_calls_of_lapack_are_refused_by_name(stem: str):
    _refuses(f"lapack_s{stem}")


def _refuses(target: str) -> None:
    form = dict(SHORT)[target]
    for what, call in wrong(made(target, form)):
        with pytest.raises(JaxRuntimeError) as caught:
            run(target, call)
        expected = rf"(?s)UNIMPLEMENTED.*@{target}: it needs .*; got \(.*\.py:"
        assert re.search(expected, str(caught.value)), (what, str(caught.value))


def test_a_wrong_rank_is_named():
    vector = jax.ShapeDtypeStruct((3,), np.float32)
    with pytest.raises(JaxRuntimeError) as caught:
        run("lapack_sgetrf_ffi", ([np.ones(3, np.float32)], [vector], {}))
    assert "@lapack_sgetrf_ffi: it needs (T[m n] -> T[m n] i32[k] i32[])" in str(caught.value)
    assert "got (f32[3]) -> (f32[3]) with parameters ()" in str(caught.value)


@pytest.mark.parametrize("target", OWN)
def test_calls_of_ipujax_made_by_hand_are_refused(target: str):
    x = np.ones((2, 3), np.float32)
    with pytest.raises(JaxRuntimeError, match=f"@{target}: it "):
        run(target, ([x], [jax.ShapeDtypeStruct(x.shape, x.dtype)], {}))


def test_signatures_are_read():
    (form,) = parsed("uplo=LU left=01: T[m n] i32[] -> T[n-1] R[k]")
    assert form.parameters == {"uplo": "LU", "left": "01"}
    assert form.operands == [("T", ["m", "n"]), ("i32", [])]
    assert form.results == [("T", ["n-1"]), ("R", ["k"])]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("reduction_dim = 1", "reduction_dim = 2"),
        ("reduction_dim = 1", "reduction_dim = -1"),
        ("reduction_dim = 1", "reduction_din = 1"),
        ("called_computations = [@top_k_gt_f32_comparator], ", ""),
        ("tensor<4x3x", "tensor<3x4x"),
        ("tensor<4x3x", "tensor<4x9x"),
        ("tensor<4x3xf32>", "tensor<4x3xi32>"),
    ],
)
def test_an_approximate_top_k_of_another_form_is_refused(old: str, new: str):
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    lowered = jax.jit(lambda x: jax.lax.approx_max_k(x, 3)).lower(x)
    text = str(lowered.compiler_ir())
    load_program(text, jax.devices()[0])([x])
    assert old in text
    with pytest.raises(JaxRuntimeError, match=r"INVALID_ARGUMENT.*needs an ApproxTopK with one"):
        load_program(text.replace(old, new), jax.devices()[0])([x])
