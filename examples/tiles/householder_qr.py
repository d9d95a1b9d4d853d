"""QR factorization by Householder reflections: a column of R, or a row of Q, on each tile.

Each step makes a reflection of one column, sends it to all tiles, and reflects what they have. The
work of a vertex is divided among the six workers of its tile.

Source: G. H. Golub and C. F. Van Loan, Matrix Computations, 4th edition, section 5.2.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu

SIZE = 32
SOURCE = """
#include <cmath>
#include <poplar/Vertex.hpp>

using poplar::Input;
using poplar::Vector;
constexpr unsigned kWorkers = 6;

template <class V>
float sum(const V& partials) {
  float total = 0;
  for (unsigned i = 0; i < kWorkers; ++i) total += partials[i];
  return total;
}

// The sum of products of two vectors, in a part for each worker; y may be longer.
class Dot : public poplar::MultiVertex {
 public:
  Input<Vector<float>> x;
  Input<Vector<float>> y;
  poplar::Output<Vector<float>> partials;

  bool compute(unsigned worker) {
    float partial = 0;
    for (unsigned i = worker; i < x.size(); i += kWorkers) partial += x[i] * y[i];
    partials[worker] = partial;
    return true;
  }
};

// v = column + sign(column[0]) |column| e0, and 2 / |v|^2 behind it: one message for both.
class Reflection : public poplar::MultiVertex {
 public:
  Input<Vector<float>> column;
  Input<Vector<float>> squares;
  poplar::Output<Vector<float>> v;

  bool compute(unsigned worker) {
    const unsigned size = column.size();
    for (unsigned i = worker; i < size; i += kWorkers) v[i] = column[i];
    if (worker != 0) return true;
    const float square = sum(squares), first = column[0];
    const float norm = std::sqrt(square);
    v[0] = first + std::copysign(norm, first);
    v[size] = square == 0 ? 0.0f : 1 / (square + std::fabs(first) * norm);
    return true;
  }
};

// x -= scale (x . v) v, from `start` on.
class Reflect : public poplar::MultiVertex {
 public:
  poplar::InOut<Vector<float>> x;
  Input<Vector<float>> v;
  Input<Vector<float>> partials;
  unsigned start;

  bool compute(unsigned worker) {
    const unsigned size = v.size() - 1;
    const float factor = v[size] * sum(partials);
    for (unsigned i = worker; i < size; i += kWorkers) x[start + i] -= factor * v[i];
    return true;
  }
};
"""

PARTIALS = jax.ShapeDtypeStruct((6,), jnp.float32)

# Cycles are counted by hand, not measured: two elements at a time in loops without overhead take
# two instructions of `Dot` (a load of each operand; the product is done beside it) and of
# `Reflection`, and three of `Reflect`. A worker has every sixth cycle, so the six together do a
# pair in as many.
dot = ipu.tile.create_vertex(
    "Dot",
    source=SOURCE,
    inputs=["x", "y"],
    outputs={"partials": PARTIALS},
    cycles=lambda x, y: 100 + x.size,
)
make_reflection = ipu.tile.create_vertex(
    "Reflection",
    source=SOURCE,
    inputs=["column", "squares"],
    outputs={"v": lambda column, squares: jax.ShapeDtypeStruct((column.size + 1,), column.dtype)},
    cycles=lambda column, squares: 300 + column.size,
)
reflect = ipu.tile.create_vertex(
    "Reflect",
    source=SOURCE,
    inputs=["x", "v", "partials"],
    in_place=["x"],
    cycles=lambda x, v, partials, start: 130 + 3 * (v.size - 1) // 2,
)


@jax.jit
def qr(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Q and R of a square matrix, with the signs that the reflections give."""
    size = matrix.shape[0]
    tiles = tuple(range(2 * size))
    # Rows of R^T, and then those of Q: all are reflected in the same way.
    rows = ipu.tile.put_sharded(jnp.concatenate([matrix.T, jnp.eye(size)]), tiles)
    for k in range(size - 1):
        column = ipu.tile.TileArray(rows.array[k : k + 1, k:], (k,))
        squares = ipu.tile.map(dot, column, column)
        v = ipu.tile.map(make_reflection, column, squares)
        v = ipu.tile.put_replicated(v.array[0], tiles)
        partials = ipu.tile.map(dot, ipu.tile.TileArray(rows.array[:, k:], tiles), v)
        rows = ipu.tile.map(reflect, rows, v, partials, start=k)
    transposed, q = jnp.split(rows.array, 2)
    return q, transposed.T


def main() -> None:
    print(repr(jax.devices()[0]))
    matrix = jax.random.normal(jax.random.key(0), (SIZE, SIZE))
    q, r = qr(matrix)
    cost = qr.lower(matrix).compile().cost_analysis()
    print(f"{SIZE} x {SIZE} on {2 * SIZE} tiles: {cost['cycles']:,.0f} cycles")
    print(f"largest error of Q R: {np.max(np.abs(q @ r - matrix)):.1e}")
    assert np.allclose(q @ r, matrix, atol=1e-4)
    assert np.allclose(q.T @ q, np.eye(SIZE), atol=1e-4)
    assert np.allclose(np.tril(r, -1), 0, atol=1e-4)


if __name__ == "__main__":
    main()
