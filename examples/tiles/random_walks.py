"""Random walks on a square grid: many walkers on each tile, with random numbers made there.

Walkers of a tile are divided among its six workers. Each has its own generator, 32 bits of state,
so that nothing is exchanged while they walk. The mean square distance from the start after n steps
is n.

Source: G. Marsaglia, Xorshift RNGs, Journal of Statistical Software 8 (2003).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import ipujax as ipu

TILES, WALKERS, STEPS = 1472, 96, 400
SOURCE = """
#include <poplar/Vertex.hpp>

using poplar::InOut;
using poplar::Vector;

class Walk : public poplar::MultiVertex {
 public:
  InOut<Vector<unsigned>> state;  // of the generators; none is zero
  InOut<Vector<int>> x;
  InOut<Vector<int>> y;
  unsigned steps;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < x.size(); i += 6) {
      unsigned bits = state[i];
      int at_x = x[i], at_y = y[i];
      for (unsigned step = 0; step < steps; ++step) {
        bits ^= bits << 13;
        bits ^= bits >> 17;
        bits ^= bits << 5;
        const int sign = 1 - int(bits >> 30 & 2);
        const int along_x = int(bits >> 30 & 1);
        at_x += sign * along_x;
        at_y += sign * (1 - along_x);
      }
      state[i] = bits;
      x[i] = at_x;
      y[i] = at_y;
    }
    return true;
  }
};
"""


def walked(state: jax.Array, x: jax.Array, y: jax.Array, *, steps: int) -> list[jax.Array]:
    """What the vertex does, in jax.numpy."""

    def step(_: int, walkers: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        bits, x, y = walkers
        bits ^= bits << 13
        bits ^= bits >> 17
        bits ^= bits << 5
        sign = 1 - (bits >> 30 & 2).astype(jnp.int32)
        along_x = (bits >> 30 & 1).astype(jnp.int32)
        return bits, x + sign * along_x, y + sign * (1 - along_x)

    return list(lax.fori_loop(0, steps, step, (state, x, y)))


walk = ipu.tile.create_vertex(
    "Walk",
    source=SOURCE,
    inputs=["state", "x", "y"],
    in_place=["state", "x", "y"],
    # By hand, not measured: 14 instructions for a step (6 of the generator, 4 to take the two
    # bits, 4 to move), 10 for a walker. A worker has every sixth cycle.
    cycles=lambda state, x, y, steps: 100 + 6 * -(-x.size // 6) * (10 + 14 * steps),
    reference=walked,
)


@jax.jit
def walks(key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The mean square distance after STEPS steps, its standard error, and the walks' cycles."""
    bits = jax.random.bits(key, (TILES, WALKERS), jnp.uint32) | 1
    state = ipu.tile.put_sharded(bits, range(TILES))
    start = ipu.tile.put_replicated(jnp.zeros(WALKERS, jnp.int32), range(TILES))
    (state, start), begin = ipu.cycle_count((state, start))
    walkers = ipu.tile.map(walk, state, start, start, steps=STEPS)
    (_, x, y), end = ipu.cycle_count(walkers)
    distances = (x.array**2 + y.array**2).astype(jnp.float32)
    return distances.mean(), distances.std() / np.sqrt(TILES * WALKERS), end - begin


def main() -> None:
    print(repr(jax.devices()[0]))
    few = [jnp.arange(1, 13, dtype=jnp.uint32).reshape(2, 6), *[jnp.zeros((2, 6), jnp.int32)] * 2]
    ipu.testing.check_vertex(walk, *few, steps=5)
    mean, error, cycles = walks(jax.random.key(0))
    print(f"{TILES * WALKERS:,} walkers, {STEPS} steps: {cycles:,} cycles")
    print(f"mean square distance: {mean:.2f}, standard error {error:.2f}")
    assert abs(mean - STEPS) < 4 * error


if __name__ == "__main__":
    main()
