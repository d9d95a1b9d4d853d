"""Functions on the host."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.errors import ConfigError

SOURCE = """
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
void Callback(const std::vector<const void*>& inputs, const std::vector<std::uint32_t>& elements,
              const std::vector<void*>& outputs, const std::string& attributes,
              const std::string& name) {
  if (name != "Callback") throw std::runtime_error("called " + name);
  const float factor = std::stof(attributes);
  const auto* x = static_cast<const float*>(inputs.at(0));
  const auto* y = static_cast<const float*>(inputs.at(1));
  for (std::uint32_t i = 0; i < elements.at(0); ++i)
    static_cast<float*>(outputs.at(0))[i] = factor * std::sin(x[i]) * y[i];
}
void Callback_grad(const std::vector<const void*>& inputs,
                   const std::vector<std::uint32_t>& elements, const std::vector<void*>& outputs,
                   const std::string& attributes, const std::string&) {
  const float factor = std::stof(attributes);
  const auto at = [&](unsigned i) { return static_cast<const float*>(inputs.at(i)); };
  for (std::uint32_t i = 0; i < elements.at(0); ++i) {
    static_cast<float*>(outputs.at(0))[i] = at(0)[i] * factor * std::cos(at(1)[i]) * at(2)[i];
    if (outputs.size() > 1)
      static_cast<float*>(outputs.at(1))[i] = at(0)[i] * factor * std::sin(at(1)[i]);
  }
}
}
"""


@pytest.fixture
def pair() -> tuple[jax.Array, jax.Array]:
    return tuple(jax.random.normal(jax.random.key(i), (3, 5)) for i in range(2))


def reference(x, y):
    return 2.5 * jnp.sin(x) * y


def test_a_library_computes_with_gradients(pair) -> None:
    call = ipu.host_call(SOURCE, lambda x, y: x, attributes="2.5", gradient=True)
    np.testing.assert_allclose(jax.jit(call)(*pair), reference(*pair), rtol=1e-5)
    found = jax.jit(jax.grad(lambda x, y: (call(x, y) ** 2).sum(), (0, 1)))(*pair)
    wanted = jax.grad(lambda x, y: (reference(x, y) ** 2).sum(), (0, 1))(*pair)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, wanted)
    first = ipu.host_call(
        SOURCE, lambda x, y: x, attributes="2.5", gradient=True, inputs_with_gradients=[0]
    )
    gx, gy = jax.grad(lambda x, y: (first(x, y) ** 2).sum(), (0, 1))(*pair)
    np.testing.assert_allclose(gx, wanted[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(gy, np.zeros_like(gy))


def test_a_function_of_python(pair) -> None:
    call = ipu.host_call(
        lambda x, y: (np.sin(x) * y, np.float64(x.sum())),
        lambda x, y: (x, jax.ShapeDtypeStruct((), jnp.float32)),
        gradient=lambda cx, cs, x, y, *_: (cx * np.cos(x) * y + cs, cx * np.sin(x)),
    )
    made, total = jax.jit(call)(*pair)
    np.testing.assert_allclose(made, jnp.sin(pair[0]) * pair[1], rtol=1e-5)
    np.testing.assert_allclose(total, pair[0].sum(), rtol=1e-5)

    def loss(f):
        def value(x, y):
            a, b = f(x, y)
            return (a**2).sum() + 3 * b

        return value

    found = jax.grad(loss(call), (0, 1))(*pair)
    wanted = jax.grad(loss(lambda x, y: (jnp.sin(x) * y, x.sum())), (0, 1))(*pair)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, wanted)
    np.testing.assert_allclose(jax.vmap(call)(*pair)[0], made, rtol=1e-6)


def test_results_without_gradients(pair) -> None:
    """Cotangents of integers are zeros of their dtype."""

    def gradient(ct, count, x, *_):
        assert count.dtype == np.int32
        return 2 * ct * x

    call = ipu.host_call(
        lambda x: (x * x, np.int32(x.size)),
        lambda x: (x, jax.ShapeDtypeStruct((), jnp.int32)),
        gradient=gradient,
    )
    found = jax.jit(jax.grad(lambda x: call(x)[0].sum()))(pair[0])
    np.testing.assert_allclose(found, 2 * pair[0], rtol=1e-6)


def test_loops_and_devices(pair) -> None:
    call = ipu.host_call(lambda x: x**2, lambda x: x, gradient=lambda ct, x, _: 2 * x * ct)

    def power(x):
        return jax.lax.scan(lambda c, _: (call(c), None), x, None, length=3)[0].sum()

    np.testing.assert_allclose(jax.jit(jax.grad(power))(pair[0]), 8 * pair[0] ** 7, rtol=1e-4)
    np.testing.assert_allclose(jax.pmap(call)(pair[0]), pair[0] ** 2, rtol=1e-6)


def test_results_vary_over_replicas_as_inputs_do(pair) -> None:
    call = ipu.host_call(lambda x: x**2, lambda x: x, gradient=lambda ct, x, _: 2 * x * ct)
    mesh = jax.make_mesh((3,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))

    def summed(x):
        return jax.lax.psum(call(call(x)), "d").sum()

    over = jax.shard_map(summed, mesh=mesh, in_specs=jax.P("d"), out_specs=jax.P())
    np.testing.assert_allclose(jax.jit(jax.grad(over))(pair[0]), 4 * pair[0] ** 3, rtol=1e-5)


def test_derivatives_that_are_not_there(pair) -> None:
    cube = ipu.host_call(lambda x: x**3, lambda x: x, gradient=lambda ct, x, _: 3 * x * x * ct)
    with pytest.raises(ConfigError, match=r"needs a gradient of .*; got none\. Pass gradient="):
        jax.grad(lambda x: ipu.host_call(np.sin, lambda x: x)(x).sum())(pair[0])
    with pytest.raises(ConfigError, match="has none itself: take derivatives once"):
        jax.grad(lambda x: jax.grad(lambda x: cube(x).sum())(x).sum())(pair[0])
    integers = ipu.host_call(np.bincount, jax.ShapeDtypeStruct((3,), jnp.int32))
    found = jax.grad(lambda x: x * integers(jnp.array([0, 2, 2])).sum().astype(jnp.float32))(2.0)
    assert found == 3


def test_what_goes_wrong(pair) -> None:
    with pytest.raises(ConfigError, match="needs a function for the gradient of a Python function"):
        ipu.host_call(np.sin, lambda x: x, gradient=True)
    with pytest.raises(ConfigError, match="needs gradient=True for a library"):
        ipu.host_call(SOURCE, lambda x: x, gradient=np.sin)
    with pytest.raises(Exception, match=r"needs results of shapes \[\(3, 5\)\]; got \[\(\)\]"):
        jax.block_until_ready(ipu.host_call(np.sum, lambda x: x)(pair[0]))
    for made, dtype in ((1j, "complex128"), ("x", "<U1"), (object(), "object")):
        shaped = np.full(pair[0].shape, made)
        with pytest.raises(Exception, match=f"results that float32 holds; got {dtype}"):
            jax.block_until_ready(ipu.host_call(lambda x, y=shaped: y, lambda x: x)(pair[0]))
    with pytest.raises(Exception, match="needs the function Absent in the library"):
        jax.block_until_ready(ipu.host_call(SOURCE, lambda x: x, name="Absent")(pair[0]))
    with pytest.raises(Exception, match="Callback threw: "):
        jax.block_until_ready(ipu.host_call(SOURCE, lambda x, y: x, attributes="no number")(*pair))
