"""Eigenvalues and eigenvectors of a symmetric matrix by Jacobi rotations: two columns on each tile.

Half of n tiles have the matrix, the others the eigenvectors. Each step finds n/2 rotations, one for
the pair of columns of each tile, and sends them to all. Every tile turns its two columns by one of
them, and those with the matrix turn rows by all of them. Then columns go to other tiles, so that
every two meet once in a sweep.

Source: G. H. Golub and C. F. Van Loan, Matrix Computations, 4th edition, section 8.5.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import ipujax as ipu
from ipujax.tile import TileArray

SIZE, SWEEPS = 32, 6
SOURCE = """
#include <cmath>
#include <cstring>
#include <poplar/Vertex.hpp>

using poplar::Input;
using poplar::Output;
using poplar::Vector;
constexpr unsigned kWorkers = 6;

// The two columns of a tile, each of n elements and its number, so that both travel together.
using Columns = Vector<Input<Vector<float>>>;

inline unsigned number(const float& stored) {
  unsigned bits;
  std::memcpy(&bits, &stored, sizeof(bits));
  return bits;
}

// The rotation that makes the element of both numbers zero: cosine, sine, and the numbers.
class FindRotation : public poplar::Vertex {
 public:
  Columns x;
  Output<Vector<float>> rotation;

  bool compute() {
    const unsigned n = x[0].size() - 1, i = number(x[0][n]), j = number(x[1][n]);
    const float ii = x[0][i], jj = x[1][j], ij = x[0][j];
    float c = 1, s = 0;
    if (std::fabs(ij) > 1e-9f * (std::fabs(ii) + std::fabs(jj))) {
      const float half = (jj - ii) / (2 * ij);
      const float t = std::copysign(1.0f, half) / (std::fabs(half) + std::sqrt(1 + half * half));
      c = 1 / std::sqrt(1 + t * t);
      s = t * c;
    }
    rotation[0] = c;
    rotation[1] = s;
    rotation[2] = x[0][n];
    rotation[3] = x[1][n];
    return true;
  }
};

// Both columns by rotation `own`; then, of the matrix, rows by all rotations. Every row is in one
// rotation, so that workers write to rows of their own.
class Turn : public poplar::MultiVertex {
 public:
  Columns x;
  Input<Vector<float>> rotations;
  Input<Vector<unsigned>> place;  // own, and 1 for the matrix
  Vector<Output<Vector<float>>> y;

  bool compute(unsigned worker) {
    const unsigned n = x[0].size() - 1, own = 4 * place[0];
    const float own_c = rotations[own], own_s = rotations[own + 1];
    for (unsigned k = 4 * worker; k < rotations.size(); k += 4 * kWorkers) {
      const float c = place[1] ? rotations[k] : 1, s = place[1] ? rotations[k + 1] : 0;
      const unsigned i = number(rotations[k + 2]), j = number(rotations[k + 3]);
      const float i0 = own_c * x[0][i] - own_s * x[1][i], i1 = own_s * x[0][i] + own_c * x[1][i];
      const float j0 = own_c * x[0][j] - own_s * x[1][j], j1 = own_s * x[0][j] + own_c * x[1][j];
      y[0][i] = c * i0 - s * j0;
      y[0][j] = s * i0 + c * j0;
      y[1][i] = c * i1 - s * j1;
      y[1][j] = s * i1 + c * j1;
    }
    if (worker == 0)
      for (unsigned k = 0; k < 2; ++k) y[k][n] = x[k][n];
    return true;
  }
};
"""
WORKERS = 6


def share(count: int) -> int:
    """Of the worker with the most to do."""
    return -(-count // WORKERS)


# Cycles are counted by hand, not measured. A rotation takes about 40 instructions, with two
# divisions and two square roots, and one worker, which has every sixth cycle. For each rotation a
# worker of the other vertex loads two pairs of words and 4 elements, makes 2 addresses and stores 4
# elements; of the arithmetic, 12 operations on pairs, half runs beside that: 18 instructions.
# Starting the workers and their loops takes about 100 cycles.
find_rotation = ipu.tile.create_vertex(
    "FindRotation",
    source=SOURCE,
    inputs=["x"],
    outputs={"rotation": jax.ShapeDtypeStruct((4,), jnp.float32)},
    cycles=lambda x: 40,
)
turn = ipu.tile.create_vertex(
    "Turn",
    source=SOURCE,
    inputs=["x", "rotations", "place"],
    outputs={"y": "x"},
    cycles=lambda x, rotations, place: 100 + WORKERS * 18 * share(rotations.size // 4),
)


def numbered(columns: jax.Array) -> jax.Array:
    """Columns [n, n], their numbers behind them."""
    numbers = lax.bitcast_convert_type(jnp.arange(len(columns), dtype=jnp.uint32), jnp.float32)
    return jnp.concatenate([columns, numbers[:, None]], axis=1)


def circle(count: int) -> np.ndarray:
    """Where the columns of `count` pairs come from: all but the first go round a circle."""
    of_pair = np.arange(2 * count).reshape(count, 2)
    first = [of_pair[0, 0], of_pair[0, 1], *of_pair[1:-1, 0]][:count]
    second = [*of_pair[1:, 1], of_pair[-1, 0]]
    return np.stack([first, second], axis=1).ravel()


def step(_: int, pairs: TileArray) -> TileArray:
    """One rotation of each pair of columns [n, 2, n + 1]: the matrix's, then the vectors'."""
    size = len(pairs)
    half = size // 2
    of_matrix = np.arange(size) < half
    place = np.stack([np.arange(size) % half, of_matrix], axis=1).astype(np.uint32)
    matrix = TileArray(pairs.array[:half], pairs.tiles[:half])
    rotations = ipu.tile.map(find_rotation, matrix).array.ravel()
    turned = ipu.tile.map(
        turn,
        pairs,
        ipu.tile.put_replicated(rotations, pairs.tiles),
        ipu.tile.put_sharded(place, pairs.tiles),
    )
    tiles = tuple(tile for tile in pairs.tiles for _ in range(2))
    columns = TileArray(turned.array.reshape(2 * size, -1), tiles)
    order = np.concatenate([circle(half), size + circle(half)])
    moved = ipu.tile.gather(columns, order.tolist(), tiles)
    return TileArray(moved.array.reshape(pairs.shape), pairs.tiles)


@jax.jit
def eigh(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues, the smallest first, and eigenvectors of a symmetric matrix of even size."""
    size = len(matrix)
    columns = jnp.concatenate([numbered(matrix), numbered(jnp.eye(size, dtype=matrix.dtype))])
    pairs = ipu.tile.put_sharded(columns.reshape(size, 2, size + 1), range(size))
    pairs = lax.fori_loop(0, SWEEPS * (size - 1), step, pairs)
    # After whole sweeps the columns are where they began.
    rows, vectors = jnp.split(pairs.array.reshape(2 * size, -1)[:, :size], 2)
    values = jnp.diagonal(rows)
    order = jnp.argsort(values)
    return values[order], vectors[order].T


def main(size: int) -> None:
    print(repr(jax.devices()[0]))
    matrix = jax.random.normal(jax.random.key(0), (size, size))
    matrix = (matrix + matrix.T) / 2
    values, vectors = eigh(matrix)
    cost = eigh.lower(matrix).compile().cost_analysis()
    print(f"{size} x {size}, {SWEEPS} sweeps on {size} tiles: {cost['cycles']:,.0f} cycles")
    error = np.max(np.abs(matrix @ vectors - vectors * values))
    print(f"largest error of A V - V diag(w): {error:.1e}")
    # Beyond 64 columns six sweeps leave more than rounding.
    assert error < 1e-4 * size
    assert np.allclose(values, np.linalg.eigvalsh(matrix), atol=1e-4 * size)
    assert np.allclose(vectors.T @ vectors, np.eye(size), atol=1e-5 * size)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SIZE)
