"""`ipu_x64`: 64-bit types refused, computed in 32 bits, or emulated exactly."""

from __future__ import annotations

import logging
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ipujax.compiler.emulation import emulated_share

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((4, 5)), RNG.standard_normal((4, 5))
N = RNG.integers(-(2**62), 2**62, (4, 5))
SMALL = RNG.integers(-100, 100, (4, 5))
ROWS = np.array([1, 3, 1])

#: Functions of a float and an integer array, both 64 bits wide.
PROGRAMS = {
    "arithmetic": lambda x, n: (x * x + 1 / x - 3, n * 3 + n // 7 - n % 5, -n, abs(n)),
    "functions": lambda x, n: (jnp.exp(x), jnp.log(abs(x)), jnp.tanh(x), jnp.sin(x), jnp.cbrt(x)),
    "more functions": lambda x, n: (
        lax.erf(x),
        lax.erf_inv(x / 9),
        lax.lgamma(x),
        x**3,
        abs(x) ** x,
    ),
    "inverse": lambda x, n: (
        jnp.arcsin(x / 9),
        jnp.arctan2(x, x + 1),
        jnp.arcsinh(x),
        lax.rsqrt(x * x),
    ),
    "rounding": lambda x, n: (
        jnp.floor(x),
        jnp.round(x),
        jnp.trunc(x),
        lax.reduce_precision(x, 8, 9),
    ),
    "compare": lambda x, n: (x < 0.5, n > 3, jnp.where(x > 0, x, 2 * x), jnp.clip(x, -0.5, 0.5)),
    "bits": lambda x, n: (
        n & 0xFF,
        n | 1,
        n ^ -1,
        n << 3,
        n >> 2,
        lax.population_count(n),
        lax.clz(n),
    ),
    "convert": lambda x, n: (x.astype(int), n.astype(float), x.astype("f4"), n.astype("i1"), x > 0),
    "product": lambda x, n: (x @ x.T, n @ n.T, jnp.einsum("ij,ij->i", x, x)),
    "sums": lambda x, n: (x.sum(0), x.mean(), n.sum(1), x.max(0), n.min(), x.prod(1), jnp.var(x)),
    "arguments": lambda x, n: (jnp.argmax(x, 1), jnp.argmin(n, 0), x.any(), jnp.nanmax(x)),
    "cumulative": lambda x, n: (jnp.cumsum(x, 0), jnp.cumprod(n, 1), lax.cummax(x, axis=1)),
    "windows": lambda x, n: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME"),
    "sort": lambda x, n: (jnp.sort(x, 0), jnp.argsort(n, 1), lax.sort((n, x), num_keys=1)),
    "top": lambda x, n: lax.top_k(x, 3),
    "gather": lambda x, n: (x[ROWS], n[:, jnp.array([4, 0])], x[jnp.argmax(n[0]) % 4]),
    "out of range": lambda x, n: x.at[jnp.array([2**40])].get(mode="fill", fill_value=7.0),
    "scatter": lambda x, n: (x.at[ROWS].add(1.5), n.at[1].set(9), x.at[ROWS, ROWS].mul(2.0)),
    "slices": lambda x, n: (x[1:3, ::2], lax.dynamic_slice(x, (n[0, 0] % 3, 1), (2, 2))),
    "update": lambda x, n: lax.dynamic_update_slice(x, x[:2, :2], (n[0, 0] % 3, 2)),
    "scan": lambda x, n: lax.scan(lambda c, r: (c * 0.9 + r, c), x[0], x),
    "while": lambda x, n: lax.while_loop(
        lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] / 3), (0, x)
    ),
    "switch": lambda x, n: lax.switch(n[0, 0] % 3, [jnp.sin, jnp.cos, lambda x: x], x),
    "convolution": lambda x, n: jnp.convolve(x[0], x[1], mode="same"),
    "moves": lambda x, n: (
        x.T,
        jnp.pad(x, 1),
        jnp.concatenate([n, n]),
        x[::-1],
        jnp.arange(7),
        jnp.eye(3),
    ),
    "gradient": lambda x, n: jax.grad(lambda x: jnp.sum(jnp.tanh(x @ x.T) ** 2))(x),
    "complex functions": lambda x, n: (jnp.tanh(x + 1j), 1 / (x - 2j), jnp.sqrt(x * 1j)),
    "complex": lambda x, n: jnp.exp(x + 1j * x[::-1]) @ (x.T * 2j),
    "callback": lambda x, n: jax.pure_callback(lambda a: np.asarray(a) * 2, x, x),
    "callback that sees the type": lambda x, n: jax.pure_callback(
        lambda a: np.asarray(a.dtype.itemsize * np.ones(n.shape), n.dtype), n, x * 3
    ),
    "random": lambda x, n: jax.random.permutation(jax.random.key(3), x),
}


#: Of numbers that do not fit 32 bits, or of how many bits there are.
DIFFER = {"out of range", "bits"}


def _run(f, mode: str, *args):
    with jax.enable_x64(True):
        compiled = jax.jit(f, compiler_options={"ipu_x64": mode})
        ours = jax.tree.leaves(compiled(*args))
        with jax.default_device(jax.devices("cpu")[0]):
            theirs = jax.tree.leaves(jax.jit(f)(*args))
        return [np.asarray(a) for a in ours], [np.asarray(a) for a in theirs]


def _close(ours, theirs, rtol: float, atol: float) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind in "fc":
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_emulated_programs_are_exact(name):
    _close(*_run(PROGRAMS[name], "emulate", X, N), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in DIFFER])
def test_demoted_programs_have_the_dtypes_asked_for_and_32_bit_precision(name):
    _close(*_run(PROGRAMS[name], "demote", X, SMALL), rtol=1e-4, atol=1e-5)


def test_emulated_bits_are_those_of_64_bit_types():
    def f(x, n):
        return lax.bitcast_convert_type(x, np.int64), lax.bitcast_convert_type(n, np.uint32)

    _close(*_run(f, "emulate", X, N), rtol=0, atol=0)


def test_emulated_random_numbers_are_jax_s_own():
    with jax.enable_x64(True):
        with jax.default_device(jax.devices("cpu")[0]):
            key = np.asarray(jax.random.key_data(jax.random.key(1)))

        def f(data):
            key = jax.random.wrap_key_data(data)
            whole = jax.random.randint(key, (7,), 0, 99)
            return jax.random.uniform(key, (7,)), jax.random.normal(key, (7,)), whole

        _close(*_run(f, "emulate", key), rtol=1e-12, atol=0)


def test_integers_wrap_at_64_bits():
    n = np.array([2**63 - 1, -(2**63), 2**40, -1])
    ours, theirs = _run(lambda n: (n + n, n * n, n - 5, n.astype(np.uint64) * 3), "emulate", n)
    _close(ours, theirs, 0, 0)


def test_software_arithmetic_is_charged():
    with jax.enable_x64(True):
        x = np.ones(100_000)
        cost = {}
        for mode, dtype in (("emulate", "f8"), ("demote", "f8"), ("demote", "f4")):
            f = jax.jit(lambda x: x * x + x, compiler_options={"ipu_x64": mode})
            cost[mode, dtype] = f.lower(x.astype(dtype)).compile().cost_analysis()["cycles"]
    assert cost["emulate", "f8"] > 5 * cost["demote", "f4"]


def test_demoted_integers_saturate_at_the_boundary():
    n = np.array([2**40, -(2**40), 7])
    ours, _ = _run(lambda n: n, "demote", n)
    assert ours[0].tolist() == [2**31 - 1, -(2**31), 7]


def test_demoted_random_floats_are_those_of_64_bits_rounded():
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        key = np.asarray(jax.random.key_data(jax.random.key(1)))

    def f(data):
        key = jax.random.wrap_key_data(data)
        return jax.random.uniform(key, (50,)), jax.random.normal(key, (50,))

    _close(*_run(f, "demote", key), rtol=1e-5, atol=1e-6)


def test_demoted_bounds_of_draws_stay_inside():
    """float32 has another least number above -1; -1 itself would give minus infinity."""
    ours, _ = _run(lambda x: lax.erf_inv(x * 0 + np.nextafter(-1.0, 0.0)), "demote", X)
    assert np.isfinite(ours[0]).all()


def test_demoted_guards_stay_above_zero():
    ours, _ = _run(lambda x: jnp.log(jnp.maximum(x * 0, np.finfo(np.float64).tiny)), "demote", X)
    assert np.isfinite(ours[0]).all()


def test_demotion_refuses_what_would_mean_something_else():
    with jax.enable_x64(True):
        for f, text in (
            (lambda x: lax.population_count(x.astype(int)), "bits of i64"),
            (lambda x: x * 1e300, "the constant 1e[+]300"),
            (lambda x: lax.bitcast_convert_type(x, np.int64), "bits of f64"),
            (lambda x: x.astype(int) << 40, "a shift by 40 bits"),
            (lambda x: x.astype(int) + 2**40, "the constant 1099511627776"),
            (lambda x: lax.rng_bit_generator(x[0, :4].astype("u4"), (3,), "u8"), "bits of ui64"),
        ):
            compiled = jax.jit(f, compiler_options={"ipu_x64": "demote"})
            with pytest.raises(jax.errors.JaxRuntimeError, match=text):
                compiled(X)


def _tridiagonal(a):
    return lax.linalg.tridiagonal_solve(jnp.triu(a)[0] * (jnp.arange(5) > 0), a[1] + 9, a[2], a)


def _size(results):
    """Of vectors, whose phases are free."""
    return jax.tree.map(jnp.abs, results)


#: Functions of a square matrix, real or complex, with results that rounding alone can change.
LINEAR = {
    "cholesky": lambda a: jnp.linalg.cholesky(a @ a.T.conj() + jnp.eye(5)),
    "inverse": jnp.linalg.inv,
    "solve": lambda a: jnp.linalg.solve(a, a[:, :2]),
    "determinant": jnp.linalg.slogdet,
    "lu": jax.scipy.linalg.lu,
    "triangles": lambda a: jax.scipy.linalg.solve_triangular(a, a.T, trans=2, lower=True),
    "qr": lambda a: _size(tuple(jnp.linalg.qr(a[:, :3]))),
    "qr with pivots": lambda a: _size(jax.scipy.linalg.qr(a, pivoting=True)),
    "eigh": lambda a: _size(tuple(jnp.linalg.eigh(a + a.T.conj()))),
    "eig": lambda a: _size(tuple(jnp.linalg.eig(a))),
    "svd": lambda a: _size(tuple(jnp.linalg.svd(a[:3]))),
    "schur": lambda a: _size(jax.scipy.linalg.schur(a)),
    "hessenberg": lambda a: _size(jax.scipy.linalg.hessenberg(a, calc_q=True)),
    "tridiagonal form": lambda a: lax.linalg.tridiagonal(a + a.T.conj())[1:],
    "tridiagonal solve": _tridiagonal,
    "exponential": jax.scipy.linalg.expm,
    "gradient": lambda a: jax.grad(lambda b: jnp.linalg.slogdet(b)[1].real)(a),
    "batch": lambda a: jax.vmap(jnp.linalg.inv)(jnp.stack([a, 2 * a.T])),
}


@pytest.mark.parametrize("parts", ["real", "complex"])
@pytest.mark.parametrize("name", LINEAR)
def test_emulated_linear_algebra_is_in_float64(name, parts):
    square = RNG.standard_normal((5, 5)) + 4 * np.diag(np.arange(1.0, 6))
    if parts == "complex":
        square = square + 1j * RNG.standard_normal((5, 5))
    _close(*_run(LINEAR[name], "emulate", square), rtol=1e-11, atol=1e-11)


def test_emulated_matrices_that_have_no_factors_give_nan():
    ours, theirs = _run(jnp.linalg.cholesky, "emulate", -np.eye(3))
    np.testing.assert_array_equal(ours[0], theirs[0])
    ours, _ = _run(lambda a: jnp.linalg.eigh(a)[0], "emulate", np.full((2, 2), np.inf))
    assert np.isnan(ours[0]).all()


def test_tiny_pivots_are_raised_in_float64():
    def f(a):
        line = jnp.zeros(3)
        return lax.linalg.tridiagonal_solve(line, a * line, line, jnp.ones((3, 1)))

    ours, theirs = _run(f, "emulate", np.float64(1))
    np.testing.assert_array_equal(np.isfinite(ours[0]), np.isfinite(theirs[0]))


def test_linear_algebra_and_transforms_are_demoted():
    square = X.T @ X + np.eye(5)
    _close(*_run(jnp.linalg.inv, "demote", square), rtol=1e-3, atol=1e-4)
    _close(*_run(jnp.linalg.eigvalsh, "demote", square), rtol=1e-4, atol=1e-4)
    _close(*_run(jnp.fft.fft, "demote", square), rtol=1e-4, atol=1e-4)


TRANSFORMS = {
    "fft": lambda x: jnp.fft.fft(x + 1j * x[::-1]),
    "ifft": lambda x: jnp.fft.ifft(x + 1j * x[::-1]),
    "rfft": jnp.fft.rfft,
    "rfft2": jnp.fft.rfft2,
    "irfft": lambda x: jnp.fft.irfft(jnp.fft.rfft(x), x.shape[-1]),
    "fftn": lambda x: jnp.fft.fftn(x.reshape(2, 2, -1)),
    "gradient": jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 3)),
    "batch": jax.vmap(jnp.fft.fft, in_axes=1),
}


@pytest.mark.parametrize("length", [1, 30, 67, 4096])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_emulated_transforms_are_in_float64(name, length):
    x = np.random.default_rng(length).standard_normal((4, length))
    ours, theirs = _run(TRANSFORMS[name], "emulate", x)
    assert ours[0].dtype == theirs[0].dtype
    np.testing.assert_allclose(ours[0], theirs[0], rtol=0, atol=4e-15 * np.abs(theirs[0]).max())


def test_refusing_names_the_option():
    f = jax.jit(lambda x: x + 1, compiler_options={"ipu_x64": "error"})
    with jax.enable_x64(True), pytest.raises(jax.errors.JaxRuntimeError, match="ipu_x64"):
        f(X)


def test_by_default_64_bits_are_emulated():
    with jax.enable_x64(True):
        key = jax.random.key(2)
        for f, args in (
            (lambda x: jnp.argmax(x, 1), (X,)),
            (lambda key: jax.random.normal(key, (9,)), (key,)),
            (lambda x: jnp.cumsum(x, 0), (N,)),
        ):
            ours = np.asarray(jax.jit(f)(*args))
            with jax.default_device(jax.devices("cpu")[0]):
                theirs = np.asarray(jax.jit(f)(*(jax.device_put(a) for a in args)))
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def _lines(caplog) -> list[logging.LogRecord]:
    return [record for record in caplog.records if "[x64]" in record.getMessage()]


def test_one_line_names_what_is_emulated_and_its_cost(caplog):
    caplog.set_level(logging.INFO, "ipujax")
    with jax.enable_x64(True):

        def product(x):
            return jnp.float32(2) * x.astype("f4") + (x * x).astype("f4")

        for _ in range(2):
            jax.jit(lambda x: product(x))(X)
    (record,) = _lines(caplog)
    assert record.levelname == "WARNING"
    line = product.__code__.co_firstlineno + 1
    assert f"the first op is convert in float64 (at test_x64.py:{line})" in record.getMessage()
    assert re.search(r"about \d+% of the program's cycles", record.getMessage())
    assert 'ipu_x64="demote"' in record.getMessage()


def test_a_small_share_is_information_and_none_is_silent(caplog):
    caplog.set_level(logging.INFO, "ipujax")
    with jax.enable_x64(True):
        a = np.ones((1500, 1500), np.float32)
        jax.jit(lambda a, n: (a @ a @ a, n + 1))(a, np.int64(3))
        assert [record.levelname for record in _lines(caplog)] == ["INFO"]
        caplog.clear()
        jax.jit(lambda x, n: (x.T, n[0]))(X, N)
    jax.jit(lambda: jax.random.uniform(jax.random.key(0), (10,)))()
    assert _lines(caplog) == []


def test_shares_count_how_often_loops_run_and_the_dearest_branch():
    step = lambda cycles, dtype: {"cost": {"cycles": cycles}, "operands": [{"type": dtype}]}  # noqa: E731
    image = {
        "steps": [step(10.0, "float"), step(5.0, "double"), step(20.0, "longlong")],
        "nodes": [
            (0, 0, [1, 2, 4]),  # a sequence of: a step, a loop, a branch
            (1, 0, []),
            (2, 4, [3]),
            (1, 1, []),
            (4, 0, [5, 6]),
            (1, 0, []),
            (1, 2, []),
        ],
    }
    assert emulated_share(image) == pytest.approx((4 * 5 + 20) / (10 + 4 * 5 + 20))


def test_small_unsigned_numbers_are_narrowed_only_where_no_op_needs_all_their_bits():
    def f(n):
        i = lax.iota(np.uint64, 5)
        return (
            i,
            i * 3 + n,
            i < 3,
            jnp.where(n > 0, i, n),
            lax.fori_loop(0, 3, lambda k, c: c + i, i),
        )

    n = np.full(5, 2**40, np.uint64)
    _close(*_run(f, "emulate", n), 0, 0)


@pytest.mark.parametrize("mode", ["error", "demote", "emulate"])
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_upper_words_of_products_need_no_64_bit_types(dtype: str, mode: str):
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.max, 0, 1, 0xFFFF, 0x10000, info.max - 1, info.min + 1])
    random = RNG.integers(info.min, info.max, (2, 200), dtype)
    x = np.concatenate([np.repeat(edges, 8).astype(dtype), random[0]])
    y = np.concatenate([np.tile(edges, 8).astype(dtype), random[1]])
    found = jax.jit(lax.mulhi, compiler_options={"ipu_x64": mode})(x, y)
    wanted = (x.astype(object) * y.astype(object)) >> 32
    np.testing.assert_array_equal(np.asarray(found), wanted.astype(dtype))


def test_products_of_float64_with_narrower_results_sum_in_float64():
    x = np.array([[1.0, 2.0**-30, -1.0]])

    def product(x, y):
        return lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=np.float32)

    with jax.enable_x64(True):
        found = jax.jit(product, compiler_options={"ipu_x64": "emulate"})(x, np.ones((3, 1)))
    assert found.dtype == np.float32
    assert float(found[0, 0]) == 2.0**-30
