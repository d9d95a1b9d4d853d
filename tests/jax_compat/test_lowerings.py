"""Primitives that JAX lowers for named platforms only."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def positive(x):
    checkify.check(jnp.all(x > 0), "not positive: {x}", x=x)
    return x + 1


def positive_when_debugging(x):
    checkify.debug_check(jnp.all(x > 0), "not positive: {x}", x=x)
    return x + 1


def test_a_check_outside_checkify_is_refused_as_on_the_cpu(device: jax.Device):
    with pytest.raises(ValueError, match="not functionalized"):
        jax.jit(positive)(jax.device_put(-1.0, device))


def test_a_check_for_debugging_outside_checkify_is_left_out(device: jax.Device):
    x = jax.device_put(-1.0, device)
    assert jax.jit(positive_when_debugging)(x) == 0
    error, _ = jax.jit(checkify.checkify(positive_when_debugging))(x)
    assert error.get().startswith("not positive: -1.0")


@custom_partitioning
def row_sums(x):
    return jnp.cumsum(x, axis=1), x.sum(axis=1)


def _partition(mesh, arguments, results):
    rows = NamedSharding(mesh, P(arguments[0].sharding.spec[0]))
    shardings = (NamedSharding(mesh, P(*rows.spec, None)), rows)
    return mesh, row_sums.fun, shardings, shardings[:1]


row_sums.def_partition(
    partition=_partition,
    infer_sharding_from_operands=lambda mesh, arguments, results: None,
    sharding_rule="i j -> i j, i",
)


@pytest.mark.parametrize("spec", [P("x"), P(None, "x"), P()], ids=str)
@pytest.mark.parametrize("num_devices", [1, 4])
def test_custom_partitioning(spec: P, num_devices: int):
    mesh = Mesh(np.array(jax.devices("ipu")[:num_devices]), ("x",))
    x = jax.device_put(X, NamedSharding(mesh, spec))
    scanned, total = jax.jit(lambda a: row_sums(a * 2))(x)
    np.testing.assert_array_equal(scanned, np.cumsum(X * 2, axis=1))
    np.testing.assert_array_equal(total, X.sum(axis=1) * 2)
    assert scanned.sharding.device_set == set(mesh.devices.flat)


@pytest.mark.parametrize("name", ["erf", "erfc", "bessel_i1e"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_special_functions_of_narrow_floats(name: str, dtype: str):
    x = np.array([-2, -0.5, 0, 0.5, 1, 3]).astype(jnp.dtype(dtype))
    function = getattr(jax.lax, name)
    found = jax.jit(function)(x)
    wide = np.asarray(function(x.astype(np.float32)))
    assert np.asarray(found).tobytes() == wide.astype(x.dtype).tobytes()
