#pragma once
#include "poplar/Graph.hpp"
#include "popsparse/internal/Pattern.hpp"

// Sparse products composed of PopLibs functions: for each block, rows of the dense operand are
// picked, multiplied by it, and added at its position. Work and memory grow with the number of
// blocks that there is room for.

namespace popsparse::internal {

/// A sparse matrix in a graph. Blocks with an out-of-range row or column are unused.
struct Blocks {
  PartitionerImpl size;
  poplar::Tensor values;   ///< [blocks, elements of a block]
  poplar::Tensor rows;     ///< UNSIGNED_INT [blocks], counted in blocks
  poplar::Tensor columns;  ///< UNSIGNED_INT [blocks], counted in blocks
};

/// Decodes the meta information of a dynamic pattern, UNSIGNED_SHORT [2 x blocks].
Blocks blocksOf(poplar::Graph& graph, const PartitionerImpl& size, const poplar::Tensor& metaInfo,
                const poplar::Tensor& nzValues, poplar::program::Sequence& prog,
                const poplar::DebugContext& di);
/// For a static pattern: positions are constants.
Blocks blocksOf(poplar::Graph& graph, const Pattern& pattern, const poplar::Tensor& nzValues,
                const poplar::DebugContext& di);
Blocks transposed(const Blocks& blocks);

/// sparse [rows, columns] x dense [columns, n]: [rows, n], of dense's type, accumulated in FLOAT.
poplar::Tensor times(poplar::Graph& graph, const Blocks& blocks, const poplar::Tensor& dense,
                     poplar::program::Sequence& prog, const poplar::DebugContext& di);

/// left [n, rows] transposed x right [n, columns] at the positions of blocks: [blocks x elements],
/// of left's type; 0 for unused blocks.
poplar::Tensor sampledProduct(poplar::Graph& graph, const Blocks& blocks,
                              const poplar::Tensor& left, const poplar::Tensor& right,
                              poplar::program::Sequence& prog, const poplar::DebugContext& di);

/// The matrix as a dense tensor: [rows, columns] in FLOAT.
poplar::Tensor dense(poplar::Graph& graph, const Blocks& blocks, poplar::program::Sequence& prog,
                     const poplar::DebugContext& di);
/// Elements of `matrix` [rows, columns] at the blocks' positions: [blocks, elements]; 0 if unused.
poplar::Tensor sampled(poplar::Graph& graph, const Blocks& blocks, const poplar::Tensor& matrix,
                       poplar::program::Sequence& prog, const poplar::DebugContext& di);

/// Zeros, FLOAT [shape], spread over tiles.
poplar::Tensor zeros(poplar::Graph& graph, const std::vector<std::size_t>& shape,
                     poplar::program::Sequence& prog, const poplar::DebugContext& di);
poplar::Tensor asType(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Type& type,
                      poplar::program::Sequence& prog, const poplar::DebugContext& di);

}  // namespace popsparse::internal
