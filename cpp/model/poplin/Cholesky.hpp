#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplin/MatMul.hpp"

namespace poplin {

/// The products of PopLibs' blocked factorization, to plan in advance and count in a cache. The
/// model factorizes column by column, without products.
std::vector<std::pair<MatMulParams, poplar::OptionFlags>> getCholeskyMatMulPrePlanParameters(
    const poplar::Type& type, const std::vector<std::size_t>& shape, bool lower,
    std::size_t blockSize, poplar::OptionFlags options);

/// A tensor [..., N, N] for cholesky, spread over all tiles. Block sizes and options have no effect
/// here or below.
poplar::Tensor createCholeskyInput(poplar::Graph& graph, const poplar::Type& type,
                                   const std::vector<std::size_t>& shape, bool lower,
                                   std::size_t blockSize, const poplar::DebugContext& debugContext,
                                   const poplar::OptionFlags& options = {},
                                   PlanningCache* cache = nullptr);

/// The triangle L with L L^T = A, or U with U^T U = A, of each symmetric positive definite matrix
/// [..., N, N]; the other triangle is zero. One triangle of A is read. Runs N dependent steps, each
/// an update by one column. A matrix that is not positive definite gives NaN.
poplar::Tensor cholesky(poplar::Graph& graph, const poplar::Tensor& a, bool lower,
                        std::size_t blockSize, poplar::program::Sequence& prog,
                        const poplar::DebugContext& debugContext = {},
                        poplar::OptionFlags options = {}, PlanningCache* cache = nullptr);
void choleskyInPlace(poplar::Graph& graph, const poplar::Tensor& a, bool lower,
                     std::size_t blockSize, poplar::program::Sequence& prog,
                     const poplar::DebugContext& debugContext = {},
                     poplar::OptionFlags options = {}, PlanningCache* cache = nullptr);

// The same without a block size, which is an option here ("blockSize").
inline std::vector<std::pair<MatMulParams, poplar::OptionFlags>> getCholeskyMatMulPrePlanParameters(
    const poplar::Type& type, const std::vector<std::size_t>& shape, bool lower,
    poplar::OptionFlags options) {
  return getCholeskyMatMulPrePlanParameters(type, shape, lower, 0, std::move(options));
}
inline poplar::Tensor createCholeskyInput(poplar::Graph& graph, const poplar::Type& type,
                                          const std::vector<std::size_t>& shape, bool lower,
                                          const poplar::DebugContext& debugContext,
                                          const poplar::OptionFlags& options = {},
                                          PlanningCache* cache = nullptr) {
  return createCholeskyInput(graph, type, shape, lower, 0, debugContext, options, cache);
}
inline poplar::Tensor cholesky(poplar::Graph& graph, const poplar::Tensor& a, bool lower,
                               poplar::program::Sequence& prog,
                               const poplar::DebugContext& debugContext = {},
                               poplar::OptionFlags options = {}, PlanningCache* cache = nullptr) {
  return cholesky(graph, a, lower, 0, prog, debugContext, std::move(options), cache);
}
inline void choleskyInPlace(poplar::Graph& graph, const poplar::Tensor& a, bool lower,
                            poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {},
                            poplar::OptionFlags options = {}, PlanningCache* cache = nullptr) {
  choleskyInPlace(graph, a, lower, 0, prog, debugContext, std::move(options), cache);
}

}  // namespace poplin
