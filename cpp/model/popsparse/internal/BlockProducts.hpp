#pragma once
#include "poplar/Graph.hpp"
#include "popsparse/internal/Pattern.hpp"

// Sparse products as compositions of PopLibs functions: rows of the dense operand are picked for
// each block, multiplied with it, and added where the block stands. Work and memory follow the
// number of blocks there is room for.

namespace popsparse::internal {

/// A sparse matrix in a graph. Blocks whose row or column lies outside are room only.
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
/// Of a static pattern: positions are constants.
Blocks blocksOf(poplar::Graph& graph, const Pattern& pattern, const poplar::Tensor& nzValues,
                const poplar::DebugContext& di);
Blocks transposed(const Blocks& blocks);

/// sparse [rows, columns] x dense [columns, n]: [rows, n], of dense's type, added up in FLOAT.
poplar::Tensor times(poplar::Graph& graph, const Blocks& blocks, const poplar::Tensor& dense,
                     poplar::program::Sequence& prog, const poplar::DebugContext& di);

/// left [n, rows] transposed x right [n, columns] where blocks stand: [blocks x elements], of
/// left's type; 0 where there is room only.
poplar::Tensor sampledProduct(poplar::Graph& graph, const Blocks& blocks,
                              const poplar::Tensor& left, const poplar::Tensor& right,
                              poplar::program::Sequence& prog, const poplar::DebugContext& di);

/// The matrix, dense: [rows, columns] in FLOAT.
poplar::Tensor dense(poplar::Graph& graph, const Blocks& blocks, poplar::program::Sequence& prog,
                     const poplar::DebugContext& di);
/// What `matrix` [rows, columns] has where blocks stand: [blocks, elements]; 0 where there is room.
poplar::Tensor sampled(poplar::Graph& graph, const Blocks& blocks, const poplar::Tensor& matrix,
                       poplar::program::Sequence& prog, const poplar::DebugContext& di);

/// FLOAT [shape], spread over tiles, of zeros.
poplar::Tensor zeros(poplar::Graph& graph, const std::vector<std::size_t>& shape,
                     poplar::program::Sequence& prog, const poplar::DebugContext& di);
poplar::Tensor asType(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Type& type,
                      poplar::program::Sequence& prog, const poplar::DebugContext& di);

}  // namespace popsparse::internal
