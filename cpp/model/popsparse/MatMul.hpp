#pragma once
#include "poplar/Graph.hpp"
#include "popsparse/MatMulParams.hpp"
#include "popsparse/PlanningCache.hpp"
#include "popsparse/SparseStorageFormats.hpp"
#include "popsparse/SparseTensor.hpp"

// Options are those of popsparse/FullyConnected.hpp. Products with more than one group throw
// poplibs_error.

namespace popsparse {
namespace dynamic {

SparseTensor createSparseDenseMatMulLHS(poplar::Graph& graph, const poplar::Type& inputType,
                                        const MatMulParams& params,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {},
                                        PlanningCache* cache = nullptr);
/// The right operand: [groups, k, n].
poplar::Tensor createSparseDenseMatMulRHS(poplar::Graph& graph, const poplar::Type& inputType,
                                          const MatMulParams& params,
                                          const poplar::DebugContext& debugContext = {},
                                          const poplar::OptionFlags& options = {},
                                          PlanningCache* cache = nullptr);
/// lhs (made by createSparseDenseMatMulLHS) x rhs, each optionally transposed: [groups, m or k, n].
poplar::Tensor sparseDenseMatMul(poplar::Graph& graph, const SparseTensor& lhs,
                                 const poplar::Tensor& rhs, poplar::program::Sequence& prog,
                                 bool transposeLHS = false, bool transposeRHS = false,
                                 const poplar::DebugContext& debugContext = {},
                                 const poplar::OptionFlags& options = {},
                                 PlanningCache* cache = nullptr);

}  // namespace dynamic

namespace static_ {

/// The left operand [m, k] of sparse x dense with the pattern of `csrLHS`; T is float or double.
template <typename T>
SparseTensor createSparseDenseMatMulLHS(poplar::Graph& graph, const poplar::Type& inputType,
                                        const MatMulParams& params, const CSRMatrix<T>& csrLHS,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {},
                                        PlanningCache* cache = nullptr);
/// The right operand [k, m] of dense x sparse.
template <typename T>
SparseTensor createDenseSparseMatMulRHS(poplar::Graph& graph, const poplar::Type& inputType,
                                        const MatMulParams& params, const CSRMatrix<T>& csrRHS,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {},
                                        PlanningCache* cache = nullptr);
/// The right operand of sparse x dense: [groups, k, n].
template <typename T>
poplar::Tensor createSparseDenseMatMulRHS(poplar::Graph& graph, const poplar::Type& inputType,
                                          const MatMulParams& params, const CSRMatrix<T>& csrLHS,
                                          const poplar::DebugContext& debugContext = {},
                                          const poplar::OptionFlags& options = {},
                                          PlanningCache* cache = nullptr);
/// The left operand of dense x sparse: [groups, n, k].
template <typename T>
poplar::Tensor createDenseSparseMatMulLHS(poplar::Graph& graph, const poplar::Type& inputType,
                                          const MatMulParams& params, const CSRMatrix<T>& csrRHS,
                                          const poplar::DebugContext& debugContext = {},
                                          const poplar::OptionFlags& options = {},
                                          PlanningCache* cache = nullptr);

/// lhs x rhs, each optionally transposed: [groups, m or k, n].
poplar::Tensor sparseDenseMatMul(poplar::Graph& graph, const SparseTensor& lhs,
                                 const poplar::Tensor& rhs, poplar::program::Sequence& prog,
                                 bool transposeLHS = false, bool transposeRHS = false,
                                 const poplar::DebugContext& debugContext = {},
                                 const poplar::OptionFlags& options = {},
                                 PlanningCache* cache = nullptr);
/// lhs x rhs, each optionally transposed: [groups, n, m or k].
poplar::Tensor denseSparseMatMul(poplar::Graph& graph, const poplar::Tensor& lhs,
                                 const SparseTensor& rhs, poplar::program::Sequence& prog,
                                 bool transposeLHS = false, bool transposeRHS = false,
                                 const poplar::DebugContext& debugContext = {},
                                 const poplar::OptionFlags& options = {},
                                 PlanningCache* cache = nullptr);

}  // namespace static_
}  // namespace popsparse
