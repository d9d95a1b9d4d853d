#include "popsparse/experimental/BlockSparse.hpp"

#include <limits>

#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"
#include "popsparse/internal/BlockProducts.hpp"
#include "poputil/exceptions.hpp"

// Each row of blocks is a small dense matrix: a view of its blocks, side by side.
namespace popsparse::experimental {
namespace {

using poplar::DebugContext;
using poplar::FLOAT;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Sequence;

struct Row {
  Tensor values;                     ///< [rows of a block, columns of all its blocks]
  std::vector<std::size_t> columns;  ///< matrix column of each column
  std::size_t first = 0;             ///< first row in its matrix
};

struct Layout {
  std::size_t rows, columns;                     ///< of a block
  std::size_t group_height;                      ///< rows of blocks of one matrix
  std::vector<std::vector<std::size_t>> blocks;  ///< columns of the blocks present in each row

  Layout(const Tensor& t, const std::array<int, 2>& dim, const std::array<int, 2>& block,
         const std::vector<unsigned char>& sparsity, unsigned num_groups = 1)
      : rows(static_cast<std::size_t>(block[0])),
        columns(static_cast<std::size_t>(block[1])),
        group_height(static_cast<std::size_t>(dim[0]) / rows) {
    const auto height = group_height * num_groups;
    const auto width = static_cast<std::size_t>(dim[1]) / columns;
    std::size_t count = 0;
    blocks.resize(height);
    for (std::size_t i = 0; i < std::min(sparsity.size(), height * width); ++i)
      if (sparsity[i]) {
        blocks[i / width].push_back(i % width);
        ++count;
      }
    if (sparsity.size() != height * width || t.numElements() != count * rows * columns)
      throw poputil::poplibs_error(
          "[popsparse::bsSoftmax] needs a mask of all blocks and values of those that stand; got " +
          std::to_string(sparsity.size()) + " of " + std::to_string(height * width) +
          " blocks and " + t.shapeToString() + ". Pass a mask that fits.");
  }

  std::vector<Row> rowsOf(const Tensor& t) const {
    std::vector<Row> made;
    const auto flat = t.flatten();
    std::size_t at = 0;
    for (std::size_t r = 0; r < blocks.size(); ++r) {
      if (blocks[r].empty()) continue;
      const std::size_t n = blocks[r].size();
      Row row;
      row.first = r % group_height * rows;
      row.values = flat.slice(at, at + n * rows * columns)
                       .reshape({n, rows, columns})
                       .dimShuffle({1, 0, 2})
                       .reshape({rows, n * columns});
      for (const auto c : blocks[r])
        for (std::size_t i = 0; i < columns; ++i) row.columns.push_back(c * columns + i);
      at += n * rows * columns;
      made.push_back(std::move(row));
    }
    return made;
  }
  /// The inverse of rowsOf.
  Tensor joined(const std::vector<Tensor>& rows_of_blocks) const {
    std::vector<Tensor> flat;
    for (const auto& t : rows_of_blocks)
      flat.push_back(
          t.reshape({rows, t.dim(1) / columns, columns}).dimShuffle({1, 0, 2}).flatten());
    return poplar::concat(flat);
  }
};

bool isMasked(SubBlockMask mask, std::size_t row, std::size_t column) {
  return (mask == SubBlockMask::ZeroUpperTriangle && column > row) ||
         (mask == SubBlockMask::ZeroLowerTriangle && column < row);
}

/// 1 for elements that take part, 0 for others; an invalid tensor if all take part.
Tensor keptIn(Graph& graph, const Row& row, SubBlockMask mask, const DebugContext& di) {
  std::vector<float> kept;
  bool all = true;
  for (std::size_t r = 0; r < row.values.dim(0); ++r)
    for (const auto column : row.columns) {
      const bool masked = isMasked(mask, row.first + r, column);
      kept.push_back(masked ? 0.0F : 1.0F);
      all = all && !masked;
    }
  if (all) return {};
  const auto t = graph.addConstant(FLOAT, row.values.shape(), kept, di);
  graph.setTileMapping(t, 0);
  return t;
}

Tensor sumOf(Graph& graph, const Tensor& t, popops::Operation op, Sequence& prog,
             const DebugContext& di) {
  return popops::reduce(graph, t, {1}, popops::ReduceParams(op), prog, di)
      .expand({1})
      .broadcast(static_cast<unsigned>(t.dim(1)), 1);
}

Tensor softmaxOf(Graph& graph, const Row& row, SubBlockMask mask, Sequence& prog,
                 const DebugContext& di) {
  auto x = popsparse::internal::asType(graph, row.values, FLOAT, prog, di);
  const auto kept = keptIn(graph, row, mask, di);
  const auto constant = [&](float value) {
    const auto t = graph.addConstant(FLOAT, {}, value, di);
    graph.setTileMapping(t, 0);
    return t.expand({0, 0})
        .broadcast(static_cast<unsigned>(x.dim(0)), 0)
        .broadcast(static_cast<unsigned>(x.dim(1)), 1);
  };
  Tensor takesPart;
  if (kept.valid()) {
    takesPart = popops::gt(graph, kept, constant(0), prog, di);
    x = popops::select(graph, x, constant(std::numeric_limits<float>::lowest()), takesPart, prog,
                       di);
  }
  const auto shifted =
      popops::sub(graph, x, sumOf(graph, x, popops::Operation::MAX, prog, di), prog, di);
  auto e = popops::exp(graph, shifted, prog, di);
  if (!kept.valid())
    return popops::div(graph, e, sumOf(graph, e, popops::Operation::ADD, prog, di), prog, di);
  // A fully masked row is 0: its sum is replaced by 1.
  e = popops::select(graph, e, constant(0), takesPart, prog, di);
  const auto sum = sumOf(graph, e, popops::Operation::ADD, prog, di);
  const auto safe = popops::select(graph, sum, constant(1),
                                   popops::gt(graph, sum, constant(0), prog, di), prog, di);
  return popops::div(graph, e, safe, prog, di);
}

}  // namespace

Tensor bsSoftmax(Graph& graph, Tensor sparseTensor, const std::array<int, 2>& dim,
                 const std::array<int, 2>& blockSize, const std::vector<unsigned char>& sparsity,
                 SubBlockMask subBlockMaskType, Sequence& prog, const std::string& debugStr) {
  return bsSoftmax(graph, sparseTensor, dim, blockSize, sparsity, subBlockMaskType, 1, prog,
                   debugStr);
}

Tensor bsSoftmax(Graph& graph, Tensor sparseTensor, const std::array<int, 2>& dim,
                 const std::array<int, 2>& blockSize, const std::vector<unsigned char>& sparsity,
                 SubBlockMask subBlockMaskType, unsigned numGroups, Sequence& prog,
                 const std::string& debugStr) {
  const DebugContext di(debugStr + "/bsSoftmax");
  const Layout layout(sparseTensor, dim, blockSize, sparsity, numGroups);
  std::vector<Tensor> made;
  for (const auto& row : layout.rowsOf(sparseTensor))
    made.push_back(softmaxOf(graph, row, subBlockMaskType, prog, di));
  if (made.empty()) return sparseTensor;
  return popsparse::internal::asType(graph, layout.joined(made), sparseTensor.elementType(), prog,
                                     di)
      .reshape(sparseTensor.shape());
}

void bsSoftmaxInPlace(Graph& graph, Tensor sparseTensor, const std::array<int, 2>& dim,
                      const std::array<int, 2>& blockSize,
                      const std::vector<unsigned char>& sparsity, SubBlockMask subBlockMaskType,
                      Sequence& prog, const std::string& debugStr) {
  bsSoftmaxInPlace(graph, sparseTensor, dim, blockSize, sparsity, subBlockMaskType, 1, prog,
                   debugStr);
}

void bsSoftmaxInPlace(Graph& graph, Tensor sparseTensor, const std::array<int, 2>& dim,
                      const std::array<int, 2>& blockSize,
                      const std::vector<unsigned char>& sparsity, SubBlockMask subBlockMaskType,
                      unsigned numGroups, Sequence& prog, const std::string& debugStr) {
  const auto made = bsSoftmax(graph, sparseTensor, dim, blockSize, sparsity, subBlockMaskType,
                              numGroups, prog, debugStr);
  prog.add(poplar::program::Copy(made, sparseTensor));
}

Tensor bsSoftmaxGrad(Graph& graph, Tensor sparseOut, Tensor sparseOutGrad,
                     const std::array<int, 2>& dim, const std::array<int, 2>& blockSize,
                     const std::vector<unsigned char>& sparsity, Sequence& prog,
                     const std::string& debugStr) {
  const DebugContext di(debugStr + "/bsSoftmaxGrad");
  const Layout layout(sparseOut, dim, blockSize, sparsity);
  const auto outs = layout.rowsOf(sparseOut);
  const auto grads = layout.rowsOf(sparseOutGrad);
  std::vector<Tensor> made;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const auto y = popsparse::internal::asType(graph, outs[i].values, FLOAT, prog, di);
    const auto g = popsparse::internal::asType(graph, grads[i].values, FLOAT, prog, di);
    const auto yg = popops::mul(graph, y, g, prog, di);
    const auto sum = sumOf(graph, yg, popops::Operation::ADD, prog, di);
    made.push_back(popops::sub(graph, yg, popops::mul(graph, y, sum, prog, di), prog, di));
  }
  if (made.empty()) return sparseOut;
  return popsparse::internal::asType(graph, layout.joined(made), sparseOut.elementType(), prog, di)
      .reshape(sparseOut.shape());
}

}  // namespace popsparse::experimental
