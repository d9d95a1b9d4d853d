"""The first minute with ipujax: devices, a jitted function, its gradient, its cost on an IPU.

Run: python examples/quickstart/quickstart.py
"""

import jax
import jax.numpy as jnp
import numpy as np


def energy(x, w):
    """x [n, k], w [k, m] -> a scalar."""
    return jnp.sum(jnp.tanh(x @ w) ** 2)


def main():
    print(jax.devices())

    x = np.linspace(-1, 1, 32 * 16, dtype=np.float32).reshape(32, 16)
    w = np.linspace(1, -1, 16 * 8, dtype=np.float32).reshape(16, 8)
    value, gradient = jax.jit(jax.value_and_grad(energy, argnums=1))(x, w)

    hidden = np.tanh(x @ w)
    wanted_gradient = x.T @ (2 * hidden * (1 - hidden**2))
    difference = float(np.max(np.abs(gradient - wanted_gradient)))
    print(f"energy {value:.4f}, NumPy {np.sum(hidden**2):.4f}")
    print(f"largest difference of the gradient from NumPy: {difference:.1e}")

    cost = jax.jit(energy).lower(x, w).compile().cost_analysis()
    print("cost of one call:", {name: cost[name] for name in sorted(cost) if cost[name]})
    if difference > 1e-4:
        raise SystemExit(f"needs a difference below 1e-4; got {difference}")


if __name__ == "__main__":
    main()
