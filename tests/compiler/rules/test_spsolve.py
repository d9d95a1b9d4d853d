"""`jax.experimental.sparse.linalg.spsolve`: small systems on the IPU, larger ones by SciPy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jax
import numpy as np
import pytest
import scipy.sparse
from jax.experimental.sparse.linalg import spsolve
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from ipujax.jax_compat.sparse import MAX_DENSE_ROWS


def system(n: int, dtype: Any = np.float32) -> tuple[Any, np.ndarray]:
    """A sparse matrix with an empty upper right corner, and rows that need a swap of pivots."""
    random = np.random.default_rng(n)
    a = scipy.sparse.random(n, n, min(1.0, 4 / n), random_state=random, format="lil")
    a.setdiag(3.0)
    a[0, 0], a[0, 1], a[1, 0] = 0.0, 2.0, 1.0
    a = scipy.sparse.csr_matrix(a).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a += 1j * scipy.sparse.eye(n, format="csr", dtype=dtype)
    return a, random.standard_normal(n).astype(dtype)


def arrays(a: Any, b: np.ndarray, device: Any) -> list[jax.Array]:
    return jax.device_put([a.data, a.indices, a.indptr, b], device)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("n", [2, 40, MAX_DENSE_ROWS + 1])
def test_it_solves_systems(n: int, dtype: Any, device: jax.Device) -> None:
    a, b = system(n, dtype)
    x = np.asarray(spsolve(*arrays(a, b, device)))
    assert x.dtype == b.dtype
    np.testing.assert_allclose(a @ x, b, atol=1e-3)


def test_in_float64(device: jax.Device) -> None:
    a, b = system(20, np.float64)
    with jax.enable_x64(True):
        x = np.asarray(jax.jit(spsolve)(*arrays(a, b, device)))
    np.testing.assert_allclose(a @ x, b, rtol=1e-11)


def test_duplicates_add_up_and_padding_counts_for_nothing(device: jax.Device) -> None:
    data = np.array([2, 1, 3, 5, 9, 9], np.float32)
    indices = np.array([0, 0, 1, 1, 0, 1], np.int32)
    indptr = np.array([0, 3, 4], np.int32)  # [[3, 3], [0, 5]]
    b = np.array([9, 10], np.float32)
    found = jax.jit(spsolve)(*jax.device_put([data, indices, indptr, b], device))
    np.testing.assert_allclose(found, [1, 2], rtol=1e-6)


def test_gradients(device: jax.Device) -> None:
    a, b = system(6)
    _, indices, indptr, _ = given = arrays(a, b, device)

    def loss(data: Any, b: Any) -> Any:
        return (spsolve(data, indices, indptr, b) ** 2).sum()

    dense, x = a.toarray(), np.linalg.solve(a.toarray(), b)
    np.testing.assert_allclose(
        jax.jit(jax.grad(loss, argnums=1))(given[0], given[3]),
        np.linalg.solve(dense.T, 2 * x),
        rtol=1e-3,
        atol=1e-4,
    )


def test_on_several_devices() -> None:
    a, b = system(8)
    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("a",))
    given = arrays(a, b, NamedSharding(mesh, P()))
    np.testing.assert_allclose(a @ np.asarray(jax.jit(spsolve)(*given)), b, atol=1e-4)


@pytest.mark.parametrize("first", ["jax.devices()", "pass"], ids=["after", "before"])
def test_the_module_may_be_imported_after_the_platform(first: str) -> None:
    code = f"""
import sys, jax, numpy as np
{first}
assert not any(name.startswith("scipy.sparse") for name in sys.modules), "loaded by the platform"
from jax.experimental.sparse.linalg import spsolve
x = spsolve(np.float32([2]), np.int32([0]), np.int32([0, 1]), np.float32([6]))
assert x.device.platform == "ipu" and x.tolist() == [3.0]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
