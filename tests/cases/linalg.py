"""Factorisations, solves and Fourier transforms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import linalg

from tests.cases.case import ALL_RUNS, Case, array, dtype_of

A = array((4, 4))
TALL = array((5, 3))
WIDE = array((3, 5))
SYMMETRIC = A + A.T + np.diag(np.arange(4, dtype="f4"))  # eigenvalues well apart
POSITIVE = (A @ A.T + 2 * np.eye(4)).astype("f4")
TRIANGLE = (A + 5 * np.eye(4)).astype("f4")
B = array((4, 3))
LINE = array((2, 12))

#: Results and their gradients pass through long sums and divisions by differences.
CLOSE = {"rtol": 2e-4, "atol": 1e-4}


def parts(z):
    """A complex result as two real ones: what rows compare."""
    return z.real, z.imag


def complex_of(x):
    """A complex argument made of a real one."""
    return x + 1j * jnp.flip(x, -1)


def hermitian(x):
    z = complex_of(x)
    return z + z.conj().T


def spread(values):
    """Vectors up to sign."""
    return jax.tree.map(jnp.abs, values)


def _solve_cases() -> list[Case]:
    rows = [
        Case("cholesky", linalg.cholesky, (POSITIVE,), ALL_RUNS, **CLOSE),
        Case(
            "cholesky-complex",
            lambda x: parts(linalg.cholesky(hermitian(x) + 20 * jnp.eye(4))),
            (A,),
            ALL_RUNS,
            **CLOSE,
        ),
        Case(
            "triangular_solve-bfloat16",
            lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True),
            (TRIANGLE.astype(dtype_of("bfloat16")), B.astype(dtype_of("bfloat16"))),
            rtol=5e-2,
            atol=5e-2,
        ),
        Case(
            "triangular_solve-float16",
            lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True),
            (TRIANGLE.astype("f2"), B.astype("f2")),
            rtol=2e-2,
            atol=2e-2,
        ),
        Case("lu", lambda x: linalg.lu(x), (A,), ALL_RUNS, **CLOSE),
        Case("lu-tall", lambda x: linalg.lu(x), (TALL,), ALL_RUNS, **CLOSE),
        Case("lu-wide", lambda x: linalg.lu(x), (WIDE,), ALL_RUNS, **CLOSE),
        Case("lu-complex", lambda x: parts(linalg.lu(complex_of(x))[0]), (A,), ALL_RUNS, **CLOSE),
        Case("solve", jnp.linalg.solve, (TRIANGLE, B), ALL_RUNS, **CLOSE),
        Case("inv", jnp.linalg.inv, (TRIANGLE,), ALL_RUNS, **CLOSE),
        Case("slogdet", jnp.linalg.slogdet, (POSITIVE,), ALL_RUNS, **CLOSE),
        Case(
            "tridiagonal_solve",
            linalg.tridiagonal_solve,
            (array((4,)), array((4,), low=3, high=4), array((4,), high=1), B),
            ALL_RUNS,
            **CLOSE,
        ),
    ]
    for left in (False, True):
        for lower in (False, True):
            for transpose in (False, True):
                rows.append(_triangle(left, lower, transpose))
    return rows


def _triangle(left: bool, lower: bool, transpose: bool) -> Case:
    options = {
        "left_side": left,
        "lower": lower,
        "transpose_a": transpose,
        "unit_diagonal": left != lower,
    }
    name = "-".join(name for name, on in options.items() if on)
    return Case(
        f"triangular_solve-{name}",
        lambda a, b: linalg.triangular_solve(a, b, **options),
        (TRIANGLE / 4, B if left else B.T),
        ALL_RUNS,
        **CLOSE,
    )


def _orthogonal_cases() -> list[Case]:
    return [
        Case("qr", lambda x: linalg.qr(x, full_matrices=False), (TALL,), ALL_RUNS, **CLOSE),
        Case("qr-full", lambda x: linalg.qr(x), (TALL,), **CLOSE),
        Case("qr-wide", lambda x: linalg.qr(x), (WIDE,), ALL_RUNS, **CLOSE),
        Case("qr-pivots", lambda x: linalg.qr(x, pivoting=True), (A,), **CLOSE),
        Case(
            "qr-complex",
            lambda x: [parts(z) for z in linalg.qr(complex_of(x), full_matrices=False)],
            (TALL,),
            ALL_RUNS,
            **CLOSE,
        ),
        Case("ormqr", linalg.ormqr, (TALL, array((3,), high=1), array((5, 2))), **CLOSE),
        Case(
            "ormqr-right-transposed",
            lambda a, tau, c: linalg.ormqr(a, tau, c, left=False, transpose=True),
            (TALL, array((3,), high=1), array((2, 5))),
            **CLOSE,
        ),
        Case("pinv", jnp.linalg.pinv, (TALL,), ALL_RUNS, rtol=1e-3, atol=1e-3),
        Case("lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], (TALL, array((5, 2))), **CLOSE),
        Case("matrix_rank", jnp.linalg.matrix_rank, (TALL,)),
    ]


def _spectral_cases() -> list[Case]:
    return [
        Case("eigh-values", lambda x: linalg.eigh(x)[1], (SYMMETRIC,), ALL_RUNS, **CLOSE),
        Case("eigh", lambda x: spread(linalg.eigh(x)), (SYMMETRIC,), ALL_RUNS, 2e-3, 1e-3),
        Case("eigh-complex", lambda x: linalg.eigh(hermitian(x))[1], (A,), ALL_RUNS, **CLOSE),
        Case("svd-values", lambda x: linalg.svd(x, compute_uv=False), (TALL,), ALL_RUNS, **CLOSE),
        Case("svd", lambda x: spread(linalg.svd(x, full_matrices=False)), (TALL,), **CLOSE),
        Case("svd-full", lambda x: spread(linalg.svd(x)), (A,), **CLOSE),
        Case(
            "svd-qr",
            lambda x: linalg.svd(x, compute_uv=False, algorithm=linalg.SvdAlgorithm.QR),
            (WIDE,),
            **CLOSE,
        ),
        Case(
            "svd-complex",
            lambda x: linalg.svd(complex_of(x), compute_uv=False),
            (TALL,),
            ALL_RUNS,
            **CLOSE,
        ),
        Case("eig", lambda x: spread(linalg.eig(x)), (TRIANGLE,), **CLOSE),
        Case("eig-complex", lambda x: spread(linalg.eig(complex_of(x))), (A,), **CLOSE),
        Case("schur", linalg.schur, (SYMMETRIC,), **CLOSE),
        Case("hessenberg", linalg.hessenberg, (A,), **CLOSE),
        Case("tridiagonal", lambda x: linalg.tridiagonal(x), (SYMMETRIC,), **CLOSE),
        Case(
            "tridiagonal-upper", lambda x: linalg.tridiagonal(x, lower=False), (SYMMETRIC,), **CLOSE
        ),
        Case("expm", jax.scipy.linalg.expm, (A / 2,), ALL_RUNS, **CLOSE),
    ]


def _fourier_cases() -> list[Case]:
    fft = jnp.fft
    return [
        Case("fft", lambda x: parts(fft.fft(complex_of(x))), (LINE,), ALL_RUNS, **CLOSE),
        Case("ifft", lambda x: parts(fft.ifft(complex_of(x))), (LINE,), ALL_RUNS, **CLOSE),
        Case("rfft", lambda x: parts(fft.rfft(x)), (LINE,), ALL_RUNS, **CLOSE),
        Case("rfft-odd", lambda x: parts(fft.rfft(x)), (WIDE,), ALL_RUNS, **CLOSE),
        Case("irfft", lambda x: fft.irfft(complex_of(x)), (LINE,), ALL_RUNS, **CLOSE),
        Case("irfft-odd", lambda x: fft.irfft(complex_of(x), 21), (LINE,), ALL_RUNS, **CLOSE),
        Case("fft-prime", lambda x: parts(fft.fft(x)), (array((2, 37)),), ALL_RUNS, **CLOSE),
        Case("fft-first", lambda x: parts(fft.fft(x, axis=0)), (LINE,), ALL_RUNS, **CLOSE),
        Case("fft-2d", lambda x: parts(fft.fft2(x)), (array((2, 6, 10)),), ALL_RUNS, **CLOSE),
        Case("rfft-3d", lambda x: parts(fft.rfftn(x)), (array((4, 3, 6)),), ALL_RUNS, **CLOSE),
        Case("irfft-2d", lambda x: fft.irfft2(complex_of(x)), (array((4, 5)),), ALL_RUNS, **CLOSE),
        Case("fft-long", lambda x: parts(fft.fft(x)), (array((2048,)),), ("jit",), **CLOSE),
        Case("convolve", lambda x, y: jax.scipy.signal.fftconvolve(x, y), (LINE[0], LINE[1])),
    ]


CASES = _solve_cases() + _orthogonal_cases() + _spectral_cases() + _fourier_cases()
