#include "popsparse/MatMul.hpp"

#include "popsparse/internal/BlockProducts.hpp"
#include "poputil/exceptions.hpp"

namespace popsparse {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;

const popsparse::internal::Pattern& patternOf(const char* where,
                                              const poputil::TensorMetaData& data) {
  if (const auto* pattern = dynamic_cast<const popsparse::internal::Pattern*>(data.getData()))
    return *pattern;
  throw poputil::poplibs_error(std::string("[popsparse::") + where +
                               "] needs a sparse tensor made for a product; got another. Make it "
                               "with create...MatMul...");
}

/// blocks x rhs [1, k, n]: [1, m, n].
Tensor product(const char* where, Graph& graph, const popsparse::internal::Blocks& blocks,
               const Tensor& rhs, Sequence& prog, const DebugContext& di) {
  if (rhs.rank() != 3 || rhs.dim(0) != 1 || rhs.dim(1) != blocks.size.numColumns)
    throw poputil::poplibs_error(
        std::string("[popsparse::") + where + "] needs a dense operand that fits a sparse one of " +
        std::to_string(blocks.size.numRows) + " x " + std::to_string(blocks.size.numColumns) +
        "; got " + rhs.shapeToString() + ". Transpose or reshape it.");
  return popsparse::internal::times(graph, blocks, rhs[0], prog, di).expand({0});
}

}  // namespace

namespace dynamic {

SparseTensor createSparseDenseMatMulLHS(Graph& graph, const poplar::Type& inputType,
                                        const MatMulParams& params,
                                        const DebugContext& debugContext,
                                        const OptionFlags& options, PlanningCache* /*cache*/) {
  auto pattern = std::make_unique<popsparse::internal::Pattern>();
  pattern->size = popsparse::internal::sizeOf("createSparseDenseMatMulLHS", params, options);
  const auto n = pattern->size.capacity;
  const auto linear = poplar::VariableMappingMethod::LINEAR;
  const auto metaInfo =
      graph.addVariable(poplar::UNSIGNED_SHORT, {2 * n}, linear, {debugContext, "metaInfo"});
  const auto values = graph.addVariable(inputType, {n * pattern->size.blockSize()}, linear,
                                        {debugContext, "nzValues"});
  return {metaInfo, values, poputil::TensorMetaData(std::move(pattern))};
}

Tensor createSparseDenseMatMulRHS(Graph& graph, const poplar::Type& inputType,
                                  const MatMulParams& params, const DebugContext& debugContext,
                                  const OptionFlags& options, PlanningCache* /*cache*/) {
  popsparse::internal::sizeOf("createSparseDenseMatMulRHS", params, options);
  return graph.addVariable(inputType, {params.getNumGroups(), params.getK(), params.getN()},
                           poplar::VariableMappingMethod::LINEAR, debugContext);
}

Tensor sparseDenseMatMul(Graph& graph, const SparseTensor& lhs, const Tensor& rhs, Sequence& prog,
                         bool transposeLHS, bool transposeRHS, const DebugContext& debugContext,
                         const OptionFlags& /*options*/, PlanningCache* /*cache*/) {
  const char* where = "dynamic::sparseDenseMatMul";
  const DebugContext di(debugContext, "sparseDenseMatMul");
  auto blocks =
      popsparse::internal::blocksOf(graph, patternOf(where, lhs.getOpMetaData()).size,
                                    lhs.getMetaInfoTensor(), lhs.getNzValuesTensor(), prog, di);
  if (transposeLHS) blocks = popsparse::internal::transposed(blocks);
  return product(where, graph, blocks, transposeRHS ? rhs.dimShuffle({0, 2, 1}) : rhs, prog, di);
}

}  // namespace dynamic

namespace static_ {
namespace {

template <typename T>
SparseTensor createSparse(const char* where, bool transposed, Graph& graph,
                          const poplar::Type& type, const MatMulParams& params,
                          const CSRMatrix<T>& matrix, const DebugContext& debugContext,
                          const OptionFlags& options) {
  if (params.isTransposed() != transposed)
    throw poputil::poplibs_error(std::string("[popsparse::static_::") + where +
                                 "] needs parameters made for " +
                                 (transposed ? "dense x sparse" : "sparse x dense") +
                                 "; got the other. Use the other create function.");
  auto pattern = std::make_unique<popsparse::internal::Pattern>();
  pattern->size = popsparse::internal::sizeOf(where, params, options);
  for (const auto& entry : popsparse::internal::entriesOf(pattern->size, matrix)) {
    pattern->rows.push_back(static_cast<unsigned>(entry.row));
    pattern->columns.push_back(static_cast<unsigned>(entry.column));
  }
  pattern->size.block = matrix.getBlockDimensions();
  const auto values = graph.addVariable(type, {matrix.nzValues.size()},
                                        poplar::VariableMappingMethod::LINEAR, debugContext);
  return {values, poputil::TensorMetaData(std::move(pattern))};
}

}  // namespace

template <typename T>
SparseTensor createSparseDenseMatMulLHS(Graph& graph, const poplar::Type& inputType,
                                        const MatMulParams& params, const CSRMatrix<T>& csrLHS,
                                        const DebugContext& debugContext,
                                        const OptionFlags& options, PlanningCache* /*cache*/) {
  return createSparse("createSparseDenseMatMulLHS", false, graph, inputType, params, csrLHS,
                      debugContext, options);
}

template <typename T>
SparseTensor createDenseSparseMatMulRHS(Graph& graph, const poplar::Type& inputType,
                                        const MatMulParams& params, const CSRMatrix<T>& csrRHS,
                                        const DebugContext& debugContext,
                                        const OptionFlags& options, PlanningCache* /*cache*/) {
  return createSparse("createDenseSparseMatMulRHS", true, graph, inputType, params, csrRHS,
                      debugContext, options);
}

template <typename T>
Tensor createSparseDenseMatMulRHS(Graph& graph, const poplar::Type& inputType,
                                  const MatMulParams& params, const CSRMatrix<T>& /*csrLHS*/,
                                  const DebugContext& debugContext, const OptionFlags& options,
                                  PlanningCache* /*cache*/) {
  popsparse::internal::sizeOf("createSparseDenseMatMulRHS", params, options);
  return graph.addVariable(inputType, {params.getNumGroups(), params.getK(), params.getN()},
                           poplar::VariableMappingMethod::LINEAR, debugContext);
}

template <typename T>
Tensor createDenseSparseMatMulLHS(Graph& graph, const poplar::Type& inputType,
                                  const MatMulParams& params, const CSRMatrix<T>& /*csrRHS*/,
                                  const DebugContext& debugContext, const OptionFlags& options,
                                  PlanningCache* /*cache*/) {
  popsparse::internal::sizeOf("createDenseSparseMatMulLHS", params, options);
  return graph.addVariable(inputType, {params.getNumGroups(), params.getN(), params.getK()},
                           poplar::VariableMappingMethod::LINEAR, debugContext);
}

Tensor sparseDenseMatMul(Graph& graph, const SparseTensor& lhs, const Tensor& rhs, Sequence& prog,
                         bool transposeLHS, bool transposeRHS, const DebugContext& debugContext,
                         const OptionFlags& /*options*/, PlanningCache* /*cache*/) {
  const char* where = "static_::sparseDenseMatMul";
  const DebugContext di(debugContext, "sparseDenseMatMul");
  auto blocks = popsparse::internal::blocksOf(graph, patternOf(where, lhs.getOpMetaData()),
                                              lhs.getNzValuesTensor(), di);
  if (transposeLHS) blocks = popsparse::internal::transposed(blocks);
  return product(where, graph, blocks, transposeRHS ? rhs.dimShuffle({0, 2, 1}) : rhs, prog, di);
}

Tensor denseSparseMatMul(Graph& graph, const Tensor& lhs, const SparseTensor& rhs, Sequence& prog,
                         bool transposeLHS, bool transposeRHS, const DebugContext& debugContext,
                         const OptionFlags& /*options*/, PlanningCache* /*cache*/) {
  // The product's transpose is transpose(rhs) x transpose(lhs).
  const char* where = "static_::denseSparseMatMul";
  const DebugContext di(debugContext, "denseSparseMatMul");
  auto blocks = popsparse::internal::blocksOf(graph, patternOf(where, rhs.getOpMetaData()),
                                              rhs.getNzValuesTensor(), di);
  if (!transposeRHS) blocks = popsparse::internal::transposed(blocks);
  const auto made =
      product(where, graph, blocks, transposeLHS ? lhs : lhs.dimShuffle({0, 2, 1}), prog, di);
  return made.dimShuffle({0, 2, 1});
}

#define IPUJAX_STATIC(T)                                                                          \
  template SparseTensor createSparseDenseMatMulLHS(                                               \
      Graph&, const poplar::Type&, const MatMulParams&, const CSRMatrix<T>&, const DebugContext&, \
      const OptionFlags&, PlanningCache*);                                                        \
  template SparseTensor createDenseSparseMatMulRHS(                                               \
      Graph&, const poplar::Type&, const MatMulParams&, const CSRMatrix<T>&, const DebugContext&, \
      const OptionFlags&, PlanningCache*);                                                        \
  template Tensor createSparseDenseMatMulRHS(Graph&, const poplar::Type&, const MatMulParams&,    \
                                             const CSRMatrix<T>&, const DebugContext&,            \
                                             const OptionFlags&, PlanningCache*);                 \
  template Tensor createDenseSparseMatMulLHS(Graph&, const poplar::Type&, const MatMulParams&,    \
                                             const CSRMatrix<T>&, const DebugContext&,            \
                                             const OptionFlags&, PlanningCache*)
IPUJAX_STATIC(float);
IPUJAX_STATIC(double);
#undef IPUJAX_STATIC

}  // namespace static_
}  // namespace popsparse
