"""A custom operation in C++ with its gradient: x sigmoid(b x), trained through.

The C++ has the interface of custom ops for Graphcore's TensorFlow. It builds a Poplar graph of two
fused expressions; JAX differentiates, compiles and runs it as it does its own operations.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu

SOURCE = """
#include <string>
#include <poplar/Graph.hpp>
#include <popops/ElementWise.hpp>

namespace pe = popops::expr;
using poplar::Tensor;
using Tensors = std::vector<Tensor>;

extern "C" {
std::int32_t custom_op_api_level = 5;

poplar::program::Program Smooth(poplar::Graph& graph, const Tensors& inputs, Tensors& outputs,
                                const std::string& attributes, const std::string& prefix) {
  const float b = std::stof(attributes);
  poplar::program::Sequence sequence;
  const auto gate = pe::Sigmoid(pe::Mul(pe::_1, pe::Const(b)));
  outputs.push_back(popops::map(graph, pe::Mul(pe::_1, gate), {inputs[0]}, sequence, prefix));
  return sequence;
}

// With g = sigmoid(b x): (g + b x g (1 - g)) times the gradient of the result.
poplar::program::Program Smooth_grad(poplar::Graph& graph, int, const Tensors& gradients,
                                     const Tensors& inputs, const Tensors&, Tensors& outputs,
                                     const std::string& attributes, const std::string& prefix) {
  const float b = std::stof(attributes);
  poplar::program::Sequence sequence;
  const auto scaled = pe::Mul(pe::_1, pe::Const(b));
  const auto gate = pe::Sigmoid(scaled);
  const auto slope =
      pe::Add(gate, pe::Mul(scaled, pe::Mul(gate, pe::Sub(pe::Const(1.0f), gate))));
  outputs.push_back(popops::map(graph, pe::Mul(pe::_2, slope), {inputs[0], gradients[0]}, sequence,
                                prefix));
  return sequence;
}
}
"""

B = 1.702
smooth = ipu.custom_op(
    SOURCE, "Smooth", outputs=lambda x: x, attributes=str(B), gradients="separate"
)


def plain(x: jax.Array) -> jax.Array:
    """The same in jax.numpy."""
    return x * jax.nn.sigmoid(B * x)


def loss(weights: tuple[jax.Array, jax.Array], x: jax.Array, y: jax.Array, function) -> jax.Array:
    first, second = weights
    return jnp.mean((function(x @ first) @ second - y) ** 2)


def trained(function, x: jax.Array, y: jax.Array) -> list[float]:
    """Losses of fifty steps of gradient descent."""
    keys = jax.random.split(jax.random.key(0))
    weights = (jax.random.normal(keys[0], (2, 32)), jax.random.normal(keys[1], (32, 1)) / 6)

    @jax.jit
    def step(weights, x, y):
        value, gradients = jax.value_and_grad(loss)(weights, x, y, function)
        return value, jax.tree.map(lambda w, g: w - 0.05 * g, weights, gradients)

    losses = []
    for _ in range(50):
        value, weights = step(weights, x, y)
        losses.append(float(value))
    return losses


def main() -> None:
    print(repr(jax.devices()[0]))
    x = jax.random.normal(jax.random.key(1), (256, 2))
    y = jnp.sin(x[:, :1]) * x[:, 1:]
    losses, wanted = trained(smooth, x, y), trained(plain, x, y)
    print(f"loss: {losses[0]:.4f} at first, {losses[-1]:.4f} after fifty steps")
    difference = np.max(np.abs(np.subtract(losses, wanted)))
    print(f"largest difference from the same in jax.numpy: {difference:.1e}")
    assert difference < 1e-5
    assert losses[-1] < 0.5 * losses[0]


if __name__ == "__main__":
    main()
