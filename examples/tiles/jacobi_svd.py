"""Singular values by one-sided Jacobi rotations: a pair of columns on each tile.

Each step makes the two columns of every pair orthogonal, and then sends columns to other tiles, so
that every two columns meet once in a sweep.

Source: R. P. Brent and F. T. Luk, The solution of singular-value and symmetric eigenvalue problems
on multiprocessor arrays, SIAM J. Sci. Stat. Comput. 6 (1985).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import ipujax as ipu

SIZE, SWEEPS = 32, 8
SOURCE = """
#include <cmath>
#include <poplar/Vertex.hpp>

// Rotates two columns so that their product is zero.
class Rotate : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> a;
  poplar::InOut<poplar::Vector<float>> b;

  bool compute() {
    float aa = 0, bb = 0, ab = 0;
    for (unsigned i = 0; i < a.size(); ++i) {
      aa += a[i] * a[i];
      bb += b[i] * b[i];
      ab += a[i] * b[i];
    }
    if (std::fabs(ab) <= 1e-9f * std::sqrt(aa * bb)) return true;
    const float zeta = (bb - aa) / (2 * ab);
    const float t = std::copysign(1.0f, zeta) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
    const float c = 1 / std::sqrt(1 + t * t), s = c * t;
    for (unsigned i = 0; i < a.size(); ++i) {
      const float left = a[i], right = b[i];
      a[i] = c * left - s * right;
      b[i] = s * left + c * right;
    }
    return true;
  }
};
"""


def rotated(a: jax.Array, b: jax.Array) -> list[jax.Array]:
    """What the vertex does, in jax.numpy."""
    aa, bb, ab = a @ a, b @ b, a @ b
    is_done = jnp.abs(ab) <= 1e-9 * jnp.sqrt(aa * bb)
    zeta = (bb - aa) / (2 * jnp.where(is_done, 1, ab))
    t = jnp.copysign(1.0, zeta) / (jnp.abs(zeta) + jnp.sqrt(1 + zeta * zeta))
    t = jnp.where(is_done, 0, t)
    c = 1 / jnp.sqrt(1 + t * t)
    return [c * a - c * t * b, c * t * a + c * b]


rotate = ipu.tile.create_vertex(
    "Rotate",
    source=SOURCE,
    inputs=["a", "b"],
    in_place=["a", "b"],
    # By hand, not measured: 6 cycles an element in the first loop, 8 in the second, 100 between.
    cycles=lambda a, b: 100 + 14 * a.size,
    reference=rotated,
)


def meetings(pairs: int) -> list[int]:
    """Where columns go after a step: those of all pairs but the first column move round a circle.

    Columns are numbered with the first ones of all pairs before the second ones.
    """
    first = [0, pairs, *range(1, pairs - 1)] if pairs > 1 else [0]
    second = [*range(pairs + 1, 2 * pairs), pairs - 1] if pairs > 1 else [1]
    return first + second


@jax.jit
def singular_values(matrix: jax.Array) -> jax.Array:
    """Of a matrix with an even number of columns, the largest first."""
    pairs = matrix.shape[1] // 2
    tiles, order = tuple(range(pairs)), meetings(pairs)

    def step(_: int, columns: ipu.tile.TileArray) -> ipu.tile.TileArray:
        a, b = (ipu.tile.TileArray(part, tiles) for part in jnp.split(columns.array, 2))
        a, b = ipu.tile.map(rotate, a, b)
        joined = ipu.tile.TileArray(jnp.concatenate([a.array, b.array]), tiles * 2)
        return ipu.tile.gather(joined, order, tiles * 2)

    columns = ipu.tile.put_sharded(matrix.T, tiles * 2)
    columns = lax.fori_loop(0, SWEEPS * (2 * pairs - 1), step, columns)
    norms = ipu.tile.map(jnp.linalg.norm, columns)
    return jnp.sort(norms.array, descending=True)


def main() -> None:
    print(repr(jax.devices()[0]))
    matrix = jax.random.normal(jax.random.key(0), (SIZE, SIZE))
    found = singular_values(matrix)
    cost = singular_values.lower(matrix).compile().cost_analysis()
    print(f"{SWEEPS} sweeps on {SIZE // 2} tiles: {cost['cycles']:,.0f} cycles")
    difference = np.max(np.abs(found - np.linalg.svd(matrix, compute_uv=False)))
    print(f"largest difference from NumPy's singular values: {difference:.1e}")
    assert difference < 1e-4


if __name__ == "__main__":
    main()
