"""`ipujax.verify`: what agrees is listed, what differs is found, named and written down."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import ipujax
from ipujax.compiler.rules.registry import RULES
from ipujax.errors import ConfigError, MismatchError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def no_reverse(monkeypatch):
    """A bug: reverse leaves everything where it is."""
    monkeypatch.setitem(RULES, "reverse", lambda builder, op: builder.operands(op))


def test_programs_that_agree_are_listed():
    f = jax.jit(lambda x: (jnp.tanh(x) @ x.T, x.astype(jnp.int32)))
    f(X)  # compiled before, and dispatched by JAX's fast path
    f(X)
    with ipujax.verify() as report:
        first, _ = f(X)
        f(X)
    assert [p.name for p in report.programs] == ["<lambda>"] * 2
    for program in report.programs:
        assert set(program.max_error) == {"cpu", "interpreter"}, program.notes
        assert max(program.max_error.values()) < 1e-5
    np.testing.assert_allclose(first, np.tanh(X) @ X.T, rtol=1e-5)
    assert "max error to cpu" in str(report)


def test_nothing_is_checked_outside(no_reverse):
    with ipujax.verify() as report:
        pass
    jax.jit(lambda x: x[::-1] * 3)(X)
    assert report.programs == []
    assert str(report) == "no program ran"


def test_numbers_keys_and_donated_arguments():
    with ipujax.verify(oracles=("cpu",)) as report:
        jax.jit(lambda x, n: x * n)(X, 3)
        jax.jit(lambda key: jax.random.bits(key, (3,)))(jax.random.key(5))
        jax.jit(lambda x: x + 1, donate_argnums=0)(jnp.asarray(X))
    assert all(p.max_error == {"cpu": 0.0} for p in report.programs), str(report)


def test_callbacks_are_not_repeated():
    seen = []
    f = jax.jit(lambda x: jax.pure_callback(lambda a: seen.append(1) or a, x, x))
    with ipujax.verify() as report:
        f(X)
    assert len(seen) == 1
    assert "has callbacks" in report.programs[0].notes["cpu"]


def test_an_op_in_a_loop_is_found(no_reverse, tmp_path):
    def body(carry, _):
        turned = jnp.tanh(carry)[::-1]
        return turned * 2, turned.sum()

    with pytest.raises(MismatchError) as caught, ipujax.verify(reproducer_dir=str(tmp_path)):
        jax.jit(lambda x: lax.scan(body, x, length=3))(np.arange(4, dtype=np.float32))
    error = caught.value
    assert error.op == "stablehlo.reverse"
    assert error.source.startswith("test_verify.py:")
    assert set(error.values) == {"ipu", "cpu", "interpreter"}
    np.testing.assert_array_equal(error.values["ipu"][0][::-1], error.values["cpu"][0])
    assert error.max_error == pytest.approx(np.tanh(3.0))
    assert "inside stablehlo.while" in str(error)
    assert "iteration 0" in str(error)
    assert isinstance(error, AssertionError)
    assert_reproducer_runs(error.reproducer)


def assert_reproducer_runs(path: str) -> None:
    """Alone, in a process without the bug."""
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    for name in ("ipu", "cpu", "interpreter"):
        assert f"{name}:\n  float32[4]" in run.stdout
    assert "result 0, ipu and cpu: equal" in run.stdout


def test_a_branch_is_entered(no_reverse):
    def f(n, x):
        return lax.switch(n, [lambda x: x, lambda x: jnp.sort(x)[::-1] + 1], x)

    with pytest.raises(MismatchError) as caught, ipujax.verify(reproducer_dir=None):
        jax.jit(f)(1, X[0])
    assert caught.value.op == "stablehlo.reverse"
    assert "inside stablehlo.case" in str(caught.value)
    assert caught.value.reproducer == ""


def test_what_is_wrong_only_when_fused_is_found_as_a_piece(monkeypatch):
    fused = RULES["fused"]

    def wrong(builder, op):
        results = list(fused(builder, op))
        if len(op.attrs["body"]) == 1:
            return results
        e = sys.modules["ipujax.compiler.rules.poplar"].popops.expr
        return builder.map([e.Neg(e.PlaceHolder(1))], results[:1], builder.debug(op)) + results[1:]

    monkeypatch.setitem(RULES, "fused", wrong)
    with pytest.raises(MismatchError) as caught, ipujax.verify(reproducer_dir=None):
        jax.jit(lambda x: jnp.cos(jnp.sin(x) * 3) @ x.T)(X)
    assert "in a piece of" in str(caught.value)
    assert caught.value.op in ("stablehlo.cosine", "stablehlo.multiply")


def test_what_adds_up_is_said_to():
    """Each op is as exact as its dtype asks, but bit for bit they are not equal."""
    x = np.linspace(1, 2, 50, dtype=np.float32)
    strict = ipujax.verify(rtol={"float32": 0.0}, oracles=("interpreter",), reproducer_dir=None)
    with pytest.raises(MismatchError, match="No op and no piece") as caught, strict:
        jax.jit(lambda x: jnp.exp(jnp.tanh(x) * 3))(x)
    assert caught.value.op == ""
    assert 0 < caught.value.max_error < 1e-4


def test_compiler_options_hold_for_the_search_and_for_the_reproducer(tmp_path):
    """80000 is an infinity but for this option, so an op differs only where it holds."""
    f = jax.jit(lambda x: jnp.abs(x) * 2, compiler_options={"ipu_half_overflow": "saturate"})
    with pytest.raises(MismatchError) as caught, ipujax.verify(reproducer_dir=str(tmp_path)):
        f(np.full(4, 40000, np.float16))
    error = caught.value
    assert error.op == "stablehlo.multiply"
    assert error.max_error == np.inf
    assert error.values["ipu"][0].tolist() == [65504] * 4
    run = subprocess.run([sys.executable, error.reproducer], capture_output=True, text=True)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "ipu and cpu: 4 of 4 elements differ by up to inf, at [0]: 65504.0" in run.stdout


def test_an_infinite_difference_is_not_called_rounding(monkeypatch):
    monkeypatch.setattr("ipujax.verification.verifier.locate", lambda *_: None)
    f = jax.jit(lambda x: x * 2, compiler_options={"ipu_half_overflow": "nan"})
    text = "infinite or NaN where the other is not.*or report a bug"
    with pytest.raises(MismatchError, match=text) as caught, ipujax.verify(reproducer_dir=None):
        f(np.full(4, 40000, np.float16))
    assert "rounding" not in str(caught.value)


def test_unknown_oracles_are_refused():
    text = "needs oracles from cpu, interpreter; got gpu"
    with pytest.raises(ConfigError, match=text), ipujax.verify(oracles=("gpu",)):
        pass


def _clamped(x: np.ndarray, start: int, size: int) -> np.ndarray:
    start = min(max(start, 0), len(x) - size)
    return x[start : start + size]


@pytest.mark.parametrize(("i", "j"), [(8, 0), (8, 2), (7, 1)])
def test_no_oracle_decides_alone(i: int, j: int):
    """jaxlib 0.10.2 on the CPU adds up the starts of nested slices before it clamps them."""

    @jax.jit
    def nested(x, i, j):
        return lax.dynamic_slice(lax.dynamic_slice(x, (i,), (6,)), (j,), (3,))

    x = np.arange(10, dtype=np.float32)
    wanted = _clamped(_clamped(x, i, 6), j, 3)
    with jax.default_device(jax.devices("cpu")[0]):
        on_cpu = np.asarray(nested(x, i, j))
    if (on_cpu == wanted).all():
        pytest.skip("this jaxlib's CPU backend clamps nested slices one by one")
    with ipujax.verify(reproducer_dir=None) as report:
        np.testing.assert_array_equal(nested(x, i, j), wanted)
    (program,) = report.programs
    assert program.max_error["interpreter"] == 0
    assert program.max_error["cpu"] > 0
    assert "differs from both ipu and interpreter" in program.notes["cpu"]
    # Alone it would have decided.
    with (
        pytest.raises(MismatchError, match="to agree with cpu"),
        ipujax.verify(oracles=("cpu",), reproducer_dir=None),
    ):
        nested(x, i, j)
