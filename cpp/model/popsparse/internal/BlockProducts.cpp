#include "popsparse/internal/BlockProducts.hpp"

#include "poplin/MatMul.hpp"
#include "popops/Cast.hpp"
#include "popops/DynamicSlice.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"
#include "popops/Zero.hpp"

namespace popsparse::internal {
namespace {

using poplar::DebugContext;
using poplar::FLOAT;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;

/// Picks rows of `table` [n, width] in FLOAT: [indices, width]. Out-of-range indices give any row.
Tensor pick(Graph& graph, const Tensor& table, const Tensor& indices, Sequence& prog,
            const DebugContext& di) {
  const auto rows = popops::multiSlice(graph, table, indices.expand({1}), {0}, {1}, prog,
                                       popops::SlicePlan(), {}, di);
  return asType(graph, rows.reshape({indices.dim(0), table.dim(1)}), FLOAT, prog, di);
}

/// table[indices[i]] += rows[i]; out-of-range indices are skipped.
void addRows(Graph& graph, const Tensor& table, const Tensor& rows, const Tensor& indices,
             Sequence& prog, const DebugContext& di) {
  const auto one = graph.addConstant(FLOAT, {}, 1.0F, di);
  graph.setTileMapping(one, 0);
  popops::multiUpdateAdd(graph, table, rows.expand({1}), indices.expand({1}), one, {0}, {1}, prog,
                         popops::SlicePlan(), {}, di);
}

/// `t` [blocks, elements], with zeros for unused blocks.
Tensor masked(Graph& graph, const Blocks& blocks, const Tensor& t, Sequence& prog,
              const DebugContext& di) {
  const auto none = graph.addConstant(poplar::UNSIGNED_INT, {},
                                      static_cast<unsigned>(blocks.size.blockRows()), di);
  const auto zero = graph.addConstant(FLOAT, {}, 0.0F, di);
  graph.setTileMapping(none, 0);
  graph.setTileMapping(zero, 0);
  const auto stands =
      popops::lt(graph, blocks.rows, none.expand({0}).broadcast(blocks.rows.dim(0), 0), prog, di);
  return popops::select(graph, t, zero.expand({0, 0}).broadcast(t.dim(0), 0).broadcast(t.dim(1), 1),
                        stands.expand({1}).broadcast(t.dim(1), 1), prog, di);
}

/// The position of each block in a row-major table of all blocks; past the end for unused blocks.
Tensor places(Graph& graph, const Blocks& blocks, Sequence& prog, const DebugContext& di) {
  const auto width = graph.addConstant(poplar::UNSIGNED_INT, {},
                                       static_cast<unsigned>(blocks.size.blockColumns()), di);
  graph.setTileMapping(width, 0);
  const auto starts =
      popops::mul(graph, blocks.rows, width.expand({0}).broadcast(blocks.rows.dim(0), 0), prog, di);
  return popops::add(graph, starts, blocks.columns, prog, di);
}

}  // namespace

Tensor zeros(Graph& graph, const std::vector<std::size_t>& shape, Sequence& prog,
             const DebugContext& di) {
  const auto t = graph.addVariable(FLOAT, shape, poplar::VariableMappingMethod::LINEAR, di);
  popops::zero(graph, t, prog, di);
  return t;
}

Tensor asType(Graph& graph, const Tensor& t, const poplar::Type& type, Sequence& prog,
              const DebugContext& di) {
  return t.elementType() == type ? t : popops::cast(graph, t, type, prog, di);
}

Blocks blocksOf(Graph& graph, const PartitionerImpl& size, const Tensor& metaInfo,
                const Tensor& nzValues, Sequence& prog, const DebugContext& di) {
  const auto n = size.capacity;
  const auto places = popops::cast(graph, metaInfo, poplar::UNSIGNED_INT, prog, di);
  return {size, nzValues.valid() ? nzValues.reshape({n, size.blockSize()}) : Tensor(),
          places.slice(0, n), places.slice(n, 2 * n)};
}

Blocks blocksOf(Graph& graph, const Pattern& pattern, const Tensor& nzValues,
                const DebugContext& di) {
  const auto constant = [&](const std::vector<unsigned>& values) {
    const auto t = graph.addConstant(poplar::UNSIGNED_INT, {values.size()}, values, di);
    graph.setTileMapping(t, 0);
    return t;
  };
  return {pattern.size, nzValues.reshape({pattern.rows.size(), pattern.size.blockSize()}),
          constant(pattern.rows), constant(pattern.columns)};
}

Blocks transposed(const Blocks& blocks) {
  Blocks t = blocks;
  std::swap(t.rows, t.columns);
  std::swap(t.size.numRows, t.size.numColumns);
  std::swap(t.size.block[0], t.size.block[1]);
  const auto n = blocks.values.dim(0);
  t.values = blocks.values.reshape({n, blocks.size.block[0], blocks.size.block[1]})
                 .dimShuffle({0, 2, 1})
                 .reshape({n, blocks.size.blockSize()});
  return t;
}

Tensor times(Graph& graph, const Blocks& blocks, const Tensor& dense, Sequence& prog,
             const DebugContext& di) {
  const auto count = blocks.rows.dim(0);
  const auto n = dense.dim(1);
  const auto [br, bc] = blocks.size.block;
  const auto sum = zeros(graph, {blocks.size.blockRows(), br * n}, prog, di);
  if (count > 0) {
    const auto values = asType(graph, blocks.values, FLOAT, prog, di);
    const auto picked =
        pick(graph, dense.reshape({blocks.size.blockColumns(), bc * n}), blocks.columns, prog, di);
    const auto parts =
        br * bc == 1
            ? popops::mul(graph, values.broadcast(static_cast<unsigned>(n), 1), picked, prog, di)
            : poplin::matMulGrouped(graph, values.reshape({count, br, bc}),
                                    picked.reshape({count, bc, n}), prog, FLOAT, di);
    addRows(graph, sum, parts.reshape({count, br * n}), blocks.rows, prog, di);
  }
  return asType(graph, sum.reshape({blocks.size.numRows, n}), dense.elementType(), prog, di);
}

Tensor sampledProduct(Graph& graph, const Blocks& blocks, const Tensor& left, const Tensor& right,
                      Sequence& prog, const DebugContext& di) {
  const auto count = blocks.rows.dim(0);
  const auto n = left.dim(0);
  const auto [br, bc] = blocks.size.block;
  const auto rows = pick(graph, left.transpose().reshape({blocks.size.blockRows(), br * n}),
                         blocks.rows, prog, di);
  const auto columns = pick(graph, right.transpose().reshape({blocks.size.blockColumns(), bc * n}),
                            blocks.columns, prog, di);
  const auto product =
      br * bc == 1 ? popops::reduce(graph, popops::mul(graph, rows, columns, prog, di), {1},
                                    popops::ReduceParams(popops::Operation::ADD), prog, di)
                   : poplin::matMulGrouped(graph, rows.reshape({count, br, n}),
                                           columns.reshape({count, bc, n}).dimShuffle({0, 2, 1}),
                                           prog, FLOAT, di);
  const auto made = masked(graph, blocks, product.reshape({count, br * bc}), prog, di);
  return asType(graph, made.flatten(), left.elementType(), prog, di);
}

Tensor dense(Graph& graph, const Blocks& blocks, Sequence& prog, const DebugContext& di) {
  const auto& s = blocks.size;
  const auto table = zeros(graph, {s.blockRows() * s.blockColumns(), s.blockSize()}, prog, di);
  addRows(graph, table, asType(graph, blocks.values, FLOAT, prog, di),
          places(graph, blocks, prog, di), prog, di);
  return table.reshape({s.blockRows(), s.blockColumns(), s.block[0], s.block[1]})
      .dimShuffle({0, 2, 1, 3})
      .reshape({s.numRows, s.numColumns});
}

Tensor sampled(Graph& graph, const Blocks& blocks, const Tensor& matrix, Sequence& prog,
               const DebugContext& di) {
  const auto& s = blocks.size;
  const auto table = matrix.reshape({s.blockRows(), s.block[0], s.blockColumns(), s.block[1]})
                         .dimShuffle({0, 2, 1, 3})
                         .reshape({s.blockRows() * s.blockColumns(), s.blockSize()});
  return masked(graph, blocks, pick(graph, table, places(graph, blocks, prog, di), prog, di), prog,
                di);
}

}  // namespace popsparse::internal
