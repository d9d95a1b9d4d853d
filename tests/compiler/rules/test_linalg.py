"""Factorisations and transforms where the rows of tests/cases/linalg.py do not reach."""

from __future__ import annotations

import jax
import jax.export
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.lax import linalg
from numpy.testing import assert_allclose, assert_array_equal

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def complex_normal(*shape: int) -> np.ndarray:
    return (normal(*shape) + 1j * normal(*shape)).astype("c8")


@pytest.mark.parametrize("n", [17, 64, 211, 1000, 4096, 65536, 100003])
def test_fft_is_at_least_as_accurate_as_on_the_cpu(n: int) -> None:
    x = complex_normal(3, n)
    wanted = np.fft.fft(x.astype("c16"))

    def error(platform: str) -> float:
        found = np.asarray(jax.jit(jnp.fft.fft)(jax.device_put(x, jax.devices(platform)[0])))
        return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))

    assert error("ipu") < max(1.5 * error("cpu"), 2e-7)


@pytest.mark.parametrize("n", [100, 101])
def test_real_transforms_come_back(n: int) -> None:
    x = normal(4, n)
    there_and_back = jax.jit(lambda x: jnp.fft.irfft(jnp.fft.rfft(x), n))
    assert_allclose(there_and_back(x), x, atol=1e-6)


def test_irfft_does_not_read_what_must_be_real() -> None:
    x = complex_normal(9)
    x[0] = complex(1, np.nan)
    x[-1] = complex(2, np.inf)
    real = x.copy()
    real[[0, -1]] = 1, 2
    assert_allclose(jax.jit(jnp.fft.irfft)(x), np.fft.irfft(real), atol=1e-6)


def test_ffts_of_nothing() -> None:
    assert jax.jit(jnp.fft.fft)(np.zeros((0, 8), "c8")).shape == (0, 8)
    assert jax.jit(jnp.fft.rfft)(np.zeros((0, 8), "f4")).shape == (0, 5)


@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("unit", [0, 1])
def test_flags_of_triangular_solves_may_be_numbers(lower: int, unit: int) -> None:
    """As in SciPy, and on the CPU backend."""
    matrix = jnp.arange(1.0, 10.0).reshape(3, 3)
    solved = jax.scipy.linalg.solve_triangular(matrix, matrix, lower=lower, unit_diagonal=unit)
    flags = {"lower": bool(lower), "unit_diagonal": bool(unit)}
    wanted = jax.scipy.linalg.solve_triangular(matrix, matrix, **flags)
    np.testing.assert_array_equal(solved, wanted)
    left = jax.lax.linalg.triangular_solve(matrix, matrix, left_side=1, transpose_a=1, **flags)
    assert left.shape == (3, 3)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 3, 3), (1, 1)])
def test_matrices_of_nothing(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, "f4")
    for f in (linalg.qr, linalg.svd, linalg.lu):
        on_cpu = jax.eval_shape(f, x)
        for ours, theirs in zip(
            jax.tree.leaves(jax.jit(f)(x)), jax.tree.leaves(on_cpu), strict=True
        ):
            assert ours.shape == theirs.shape


@pytest.mark.parametrize("kind", ["f4", "c8"])
def test_eig_of_any_matrix(kind: str) -> None:
    a = (complex_normal(2, 40, 40) if kind == "c8" else normal(2, 40, 40)).astype(kind)
    w, left, right = (np.asarray(x) for x in jax.jit(linalg.eig)(a))
    assert_allclose(a @ right, right * w[:, None], atol=2e-4)
    left_adjoint = left.conj().swapaxes(1, 2)
    assert_allclose(left_adjoint @ a, w[:, :, None] * left_adjoint, atol=2e-4)


@pytest.mark.parametrize("kind", ["f4", "c8"])
def test_schur_of_any_matrix(kind: str) -> None:
    a = (complex_normal(30, 30) if kind == "c8" else normal(30, 30)).astype(kind)
    t, q = (np.asarray(x) for x in jax.jit(linalg.schur)(a))
    assert_allclose(q @ t @ q.conj().T, a, atol=1e-4)
    assert_array_equal(np.tril(t, -2), 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["eig", "eigh", "schur", "svd"])
def test_what_is_not_finite_gives_nan_in_that_matrix_alone(name: str, bad: float) -> None:
    a = normal(3, 4, 4)
    a[1, 2, 1] = bad
    for result in jax.tree.leaves(jax.jit(getattr(linalg, name))(a)):
        assert np.isnan(result[1]).all()
        assert np.isfinite(result[0]).all()
        assert np.isfinite(result[2]).all()


@pytest.mark.parametrize("name", ["lu", "qr", "hessenberg", "tridiagonal"])
def test_what_is_not_finite_does_no_harm(name: str) -> None:
    a = normal(3, 4, 4)
    a[1, 2, 1] = np.nan
    for result in jax.tree.leaves(jax.jit(getattr(linalg, name))(a)):
        assert np.isfinite(result[0]).all()
        assert np.isfinite(result[2]).all()


def test_a_matrix_that_is_not_positive_definite_gives_nan() -> None:
    a = np.stack([np.eye(3), -np.eye(3)]).astype("f4")
    factors = np.asarray(jax.jit(linalg.cholesky)(a))
    assert_array_equal(factors[0], np.eye(3))
    assert np.isnan(factors[1][np.tril_indices(3)]).all()


def test_a_singular_matrix_is_solved_to_what_is_not_finite() -> None:
    assert not np.isfinite(jax.jit(jnp.linalg.inv)(np.ones((3, 3), "f4"))).all()


def test_tridiagonal_solve_of_a_singular_matrix() -> None:
    zeros = np.zeros(4, "f4")
    solved = jax.jit(linalg.tridiagonal_solve)(zeros, zeros, zeros, normal(4, 2))
    assert np.isnan(solved).all()
    perturbed = jax.jit(lambda *args: linalg.tridiagonal_solve(*args, perturb_singular=True))
    ones = np.ones(4, "f4")
    singular = (zeros, np.array([1, 1, 1, 0], "f4"), zeros, ones[:, None])
    assert_allclose(perturbed(*singular)[:3], ones[:3, None])
    assert np.isfinite(perturbed(*singular)).all()


def test_perturbed_systems_of_complex_numbers() -> None:
    """Also where rows are swapped, and where the last pivot is 0."""
    zeros, ones = np.zeros(4, "c8"), np.ones(4, "c8")
    perturbed = jax.jit(lambda *args: linalg.tridiagonal_solve(*args, perturb_singular=True))
    lower, upper = np.array([0, 1j, 2, 3 - 1j], "c8"), np.array([2j, 1, 1 + 1j, 0], "c8")
    a = np.diag(upper[:-1], 1) + np.diag(lower[1:], -1)
    b = (np.arange(8).reshape(4, 2) + 1j).astype("c8")
    assert_allclose(a @ perturbed(lower, zeros, upper, b), b, atol=1e-5)
    singular = perturbed(zeros, np.array([1j, 1, 1, 0], "c8"), zeros, ones[:, None])
    assert_allclose(singular[:3, 0], [-1j, 1, 1])
    assert np.isfinite(singular).all()
    assert abs(singular[3, 0]) > 1e6


@pytest.mark.parametrize("kind", ["far", "close", "split"])
def test_eigenvectors_of_tridiagonal_hermitian_matrices(kind: str) -> None:
    """Eigenvalues far from each other, in a cluster, and of matrices that fall into blocks."""
    d = normal(7)
    e = (normal(6) + 1j * np.flip(normal(6))).astype("c8")
    if kind == "close":
        d, e = np.ones_like(d), e * np.float32(1e-3)
    if kind == "split":
        e[::2] = 0
    a = np.diag(d) + np.diag(e, 1) + np.diag(e.conj(), -1)
    w, v = jax.scipy.linalg.eigh_tridiagonal(jnp.asarray(d, "c8"), e, eigvals_only=False)
    assert_allclose(w, np.linalg.eigvalsh(a), atol=1e-5)
    assert_allclose(a @ v, v * w, atol=1e-5)
    assert_allclose(np.conj(v).T @ v, np.eye(7), atol=1e-5)


def test_costs_grow_with_the_work() -> None:
    functions = (
        jnp.fft.fft,
        linalg.cholesky,
        linalg.lu,
        linalg.qr,
        linalg.eigh,
        linalg.svd,
        lambda a: linalg.triangular_solve(a, a, left_side=True),
    )

    def cycles(f, n: int) -> float:
        compiled = jax.jit(f).lower(jax.ShapeDtypeStruct((n, n), "f4")).compile()
        return compiled.cost_analysis()["cycles"]

    for f in functions:
        assert 0 < 1.2 * cycles(f, 128) < cycles(f, 256)


def test_approx_top_k_is_exact() -> None:
    x = normal(3, 200, 2)
    for f, sign in ((jax.lax.approx_max_k, -1), (jax.lax.approx_min_k, 1)):
        values, where = jax.jit(lambda x, f=f: f(x, 5, reduction_dimension=1))(x)
        order = np.argsort(sign * x, axis=1)[:, :5]
        assert_array_equal(where, order)
        assert_array_equal(values, np.take_along_axis(x, order, 1))


def test_scaled_matmul() -> None:
    a = normal(2, 16, 64).astype(ml_dtypes.float8_e4m3fn)
    b = normal(2, 8, 64).astype(ml_dtypes.float8_e4m3fn)
    one, two = (np.full((2, n, 2), v, ml_dtypes.float8_e8m0fnu) for n, v in ((16, 1), (8, 2)))
    scaled = jax.jit(lambda *args: jax.nn.scaled_matmul(*args, preferred_element_type=jnp.float32))
    wanted = np.einsum("bik,bjk->bij", a.astype("f4"), 2 * b.astype("f4"))
    assert_allclose(scaled(a, b, one, two), wanted, rtol=1e-6)


def test_pbroadcast_on_one_device() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices("ipu")[:1]), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    f = jax.shard_map(
        lambda x: jax.lax.pbroadcast(x, "i", 0), mesh=mesh, in_specs=spec, out_specs=spec
    )
    assert_array_equal(jax.jit(f)(np.arange(4.0, dtype="f4")), np.arange(4.0))


def test_what_only_a_gpu_can_is_refused_by_name() -> None:
    from ipujax.errors import UnsupportedOpError
    from ipujax.jax_compat import lowerings

    fused = lowerings._cudnn_primitives()["dot_product_attention_fwd"]
    with pytest.raises(UnsupportedOpError, match=r"dot_product_attention_fwd: .*cuDNN"):
        lowerings._refuse_primitive(fused.name, None)


def test_half_precision_is_refused_as_on_the_cpu() -> None:
    with pytest.raises(NotImplementedError, match="float16"):
        jax.jit(linalg.eigh)(np.eye(3, dtype="f2"))


def test_solves_are_exported() -> None:
    a, b = normal(3, 3) + 3 * np.eye(3, dtype="f4"), normal(3)
    exported = jax.export.export(jax.jit(jnp.linalg.solve), platforms=["ipu"])(a, b)
    again = jax.export.deserialize(exported.serialize())
    assert_allclose(again.call(a, b), np.linalg.solve(a, b), rtol=1e-4)


def positive(n: int) -> np.ndarray:
    a = normal(n, n)
    return a @ a.T + n * np.eye(n, dtype="f4")


def test_block_sizes_change_the_plan_and_not_the_result() -> None:
    a, b = positive(96), normal(96, 5)
    functions = {
        "cholesky_block_size": (jnp.linalg.cholesky, (a,)),
        "triangular_solve_expander_block_size": (
            lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True),
            (np.tril(a), b),
        ),
    }
    for option, (f, arguments) in functions.items():
        runs = {}
        for size in (None, 0, 8, 32, 96):
            options = None if size is None else {f"ipu_{option}": size}
            runs[size] = jax.jit(f, compiler_options=options).lower(*arguments).compile()
        wanted = runs[None](*arguments)
        for run in runs.values():
            assert_array_equal(run(*arguments), wanted)
        cycles = {size: run.cost_analysis()["cycles"] for size, run in runs.items()}
        assert cycles[0] == cycles[None]
        assert len(set(cycles.values())) == 4, cycles
        # Few exchanges for large blocks, and one worker that factorises all of them.
        assert cycles[96] > cycles[8], cycles
        code = {
            size: run.memory_analysis().generated_code_size_in_bytes for size, run in runs.items()
        }
        assert code[8] > code[32] > code[96], code
