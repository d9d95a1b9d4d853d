#include "popsparse/experimental/BlockSparseMatMul.hpp"

#include "popsparse/internal/BlockProducts.hpp"
#include "poputil/exceptions.hpp"

namespace popsparse::experimental {

using poplar::DebugContext;
using poplar::Graph;
using poplar::Tensor;
using poputil::poplibs_error;

class BSMatMulImpl {
 public:
  std::array<std::size_t, 3> dim{};  ///< M, K, N
  bool sparseResult = false;
  bool transposed = false;
  poplar::Type inType;
  poplar::Type outType;
  std::vector<popsparse::internal::Pattern> groups;

  std::size_t blocks() const {
    std::size_t n = 0;
    for (const auto& group : groups) n += group.rows.size();
    return n;
  }
};

namespace {

popsparse::internal::Pattern patternOf(const unsigned char* mask, std::size_t rows,
                                       std::size_t columns, std::array<std::size_t, 2> block) {
  popsparse::internal::Pattern pattern;
  pattern.size.numRows = rows;
  pattern.size.numColumns = columns;
  pattern.size.block = block;
  const std::size_t width = pattern.size.blockColumns();
  for (std::size_t i = 0; i < pattern.size.blockRows() * width; ++i) {
    if (!mask[i]) continue;
    pattern.rows.push_back(static_cast<unsigned>(i / width));
    pattern.columns.push_back(static_cast<unsigned>(i % width));
  }
  return pattern;
}

/// `row` and `column`: positions of the pattern's rows and columns in {M, K, N}.
std::unique_ptr<BSMatMulImpl> implOf(const std::array<int, 3>& dim,
                                     const std::array<int, 3>& blockSize, int row, int column,
                                     const std::vector<unsigned char>& mask, poplar::Type in,
                                     poplar::Type out, unsigned groups) {
  auto impl = std::make_unique<BSMatMulImpl>();
  std::array<std::size_t, 3> block{};
  for (int i = 0; i < 3; ++i) {
    if (dim[i] <= 0 || blockSize[i] <= 0 || dim[i] % blockSize[i])
      throw poplibs_error(
          "[popsparse::BSMatMulParams] needs blocks that divide the matrices; got " +
          std::to_string(blockSize[i]) + " in " + std::to_string(dim[i]) + ". Use other blocks.");
    impl->dim[i] = static_cast<std::size_t>(dim[i]);
    block[i] = static_cast<std::size_t>(blockSize[i]);
  }
  const std::size_t each = impl->dim[row] / block[row] * (impl->dim[column] / block[column]);
  if (mask.size() != each * groups)
    throw poplibs_error("[popsparse::BSMatMulParams] needs a mask of " +
                        std::to_string(each * groups) + " blocks; got " +
                        std::to_string(mask.size()) + ". Pass one for each block and group.");
  for (unsigned g = 0; g < groups; ++g)
    impl->groups.push_back(patternOf(mask.data() + g * each, impl->dim[row], impl->dim[column],
                                     {block[row], block[column]}));
  impl->inType = in;
  impl->outType = out;
  return impl;
}

void checkOperand(const char* name, const Tensor& t, std::size_t rows, std::size_t columns) {
  if (t.numElements() == rows * columns) return;
  throw poplibs_error(std::string("[popsparse::bsMatMul] needs ") + name + " of [" +
                      std::to_string(rows) + ", " + std::to_string(columns) + "]; got " +
                      t.shapeToString() + ". Reshape or slice it.");
}

}  // namespace

BSMatMulParams::BSMatMulParams(const std::array<int, 3>& dim, const std::array<int, 3>& blockSize,
                               const std::vector<unsigned char>& rhsSparsity, bool rhsNeedTranspose,
                               poplar::Type inDataType, poplar::Type outDataType,
                               poplar::Type /*partialDataType*/, unsigned numGroupsIn)
    : impl(implOf(dim, blockSize, rhsNeedTranspose ? 2 : 1, rhsNeedTranspose ? 1 : 2, rhsSparsity,
                  inDataType, outDataType, numGroupsIn)) {
  impl->transposed = rhsNeedTranspose;
}

BSMatMulParams::BSMatMulParams(const std::array<int, 3>& dim, const std::array<int, 3>& blockSize,
                               const std::vector<unsigned char>& resSparsity,
                               poplar::Type inDataType, poplar::Type outDataType,
                               poplar::Type /*partialDataType*/, SubBlockMask subBlockMask,
                               unsigned numGroupsIn)
    : impl(implOf(dim, blockSize, 0, 2, resSparsity, inDataType, outDataType, numGroupsIn)) {
  if (subBlockMask != SubBlockMask::None)
    throw poplibs_error(
        "[popsparse::BSMatMulParams] needs SubBlockMask::None; got a mask inside blocks. Mask the "
        "result, or use bsSoftmax, which does.");
  impl->sparseResult = true;
}

BSMatMulParams::BSMatMulParams(BSMatMulParams&& other) noexcept = default;
BSMatMulParams::~BSMatMulParams() = default;

Tensor createBSMatMulInputLHS(Graph& graph, const BSMatMulParams& bsMatMul,
                              const std::string& name) {
  const auto& impl = *bsMatMul.impl;
  return graph.addVariable(impl.inType, {impl.groups.size() * impl.dim[0], impl.dim[1]},
                           poplar::VariableMappingMethod::LINEAR, name);
}

Tensor createBSMatMulInputRHS(Graph& graph, const BSMatMulParams& bsMatMul,
                              const std::string& name) {
  const auto& impl = *bsMatMul.impl;
  const auto linear = poplar::VariableMappingMethod::LINEAR;
  if (impl.sparseResult)
    return graph.addVariable(impl.inType, {impl.groups.size() * impl.dim[1], impl.dim[2]}, linear,
                             name);
  return graph.addVariable(impl.inType, {impl.blocks(), impl.groups[0].size.blockSize()}, linear,
                           name);
}

Tensor bsMatMul(Graph& graph, const BSMatMulParams& bsMatMul, poplar::program::Sequence& prog,
                const Tensor& lhsMatrix, const Tensor& rhsMatrix,
                const poplar::OptionFlags& /*options*/, const std::string& debugPrefix) {
  namespace internal = popsparse::internal;
  const DebugContext di(debugPrefix + "/bsMatMul");
  const auto& impl = *bsMatMul.impl;
  const auto [m, k, n] = impl.dim;
  const std::size_t groups = impl.groups.size();
  const std::size_t elements = impl.groups[0].size.blockSize();
  checkOperand("a left operand", lhsMatrix, groups * m, k);
  if (impl.sparseResult)
    checkOperand("a right operand", rhsMatrix, groups * k, n);
  else
    checkOperand("a right operand", rhsMatrix, impl.blocks(), elements);
  const auto lhs = lhsMatrix.reshape({groups, m, k});
  std::vector<Tensor> results;
  std::size_t first = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    const auto& pattern = impl.groups[g];
    const std::size_t end = first + pattern.rows.size();
    if (impl.sparseResult) {
      const auto values = graph.addVariable(impl.inType, {pattern.rows.size() * elements},
                                            poplar::VariableMappingMethod::LINEAR, di);
      const auto right = rhsMatrix.reshape({groups, k, n})[g];
      results.push_back(internal::sampledProduct(graph,
                                                 internal::blocksOf(graph, pattern, values, di),
                                                 lhs[g].transpose(), right, prog, di)
                            .reshape({pattern.rows.size(), elements}));
    } else {
      const auto values = rhsMatrix.reshape({impl.blocks(), elements}).slice(first, end);
      auto blocks = internal::blocksOf(graph, pattern, values, di);
      if (!impl.transposed) blocks = internal::transposed(blocks);
      results.push_back(internal::times(graph, blocks, lhs[g].transpose(), prog, di).transpose());
    }
    first = end;
  }
  return internal::asType(graph, poplar::concat(results), impl.outType, prog, di);
}

}  // namespace popsparse::experimental
