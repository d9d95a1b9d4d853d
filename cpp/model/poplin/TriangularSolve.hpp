#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplin/MatMul.hpp"

namespace poplin {

/// Operands [..., N, N] and [..., N, K] (or [..., K, N]) of triangularSolve, spread over all tiles.
/// Block sizes and options have no effect here or below.
poplar::Tensor createTriangularSolveInputLHS(poplar::Graph& graph, const poplar::Type& inputType,
                                             const poplar::Type& outputType,
                                             const std::vector<std::size_t>& aShape,
                                             const std::vector<std::size_t>& bShape, bool leftSide,
                                             const poplar::DebugContext& debugContext,
                                             const poplar::OptionFlags& options = {},
                                             PlanningCache* cache = nullptr);
poplar::Tensor createTriangularSolveInputLHS(
    poplar::Graph& graph, const poplar::Type& inputType, const poplar::Type& outputType,
    const std::vector<std::size_t>& aShape, const std::vector<std::size_t>& bShape, bool leftSide,
    std::size_t blockSize, const poplar::DebugContext& debugContext,
    const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);
poplar::Tensor createTriangularSolveInputRHS(poplar::Graph& graph, const poplar::Type& inputType,
                                             const poplar::Type& outputType,
                                             const std::vector<std::size_t>& aShape,
                                             const std::vector<std::size_t>& bShape, bool leftSide,
                                             const poplar::DebugContext& debugContext,
                                             const poplar::OptionFlags& options = {},
                                             PlanningCache* cache = nullptr);
poplar::Tensor createTriangularSolveInputRHS(
    poplar::Graph& graph, const poplar::Type& inputType, const poplar::Type& outputType,
    const std::vector<std::size_t>& aShape, const std::vector<std::size_t>& bShape, bool leftSide,
    std::size_t blockSize, const poplar::DebugContext& debugContext,
    const poplar::OptionFlags& options, PlanningCache* cache = nullptr);

/// One triangle of each matrix [..., N, N], with zeros in the other one, and ones on the diagonal
/// if it is a unit diagonal.
poplar::Tensor triangularMask(poplar::Graph& graph, const poplar::Tensor& a, bool lower,
                              bool unitDiagonal, poplar::program::Sequence& prog,
                              const poplar::DebugContext& debugContext = {});

/// X with A X = B, or X A = B unless leftSide, reading one triangle of A. Runs N dependent steps,
/// each subtracting a row of X from all others.
poplar::Tensor triangularSolve(poplar::Graph& graph, const poplar::Tensor& a,
                               const poplar::Tensor& b, bool leftSide, bool lower,
                               bool unitDiagonal, poplar::program::Sequence& prog,
                               const poplar::DebugContext& debugContext = {},
                               const poplar::OptionFlags& options = {},
                               PlanningCache* cache = nullptr);
poplar::Tensor triangularSolve(poplar::Graph& graph, const poplar::Tensor& a,
                               const poplar::Tensor& b, bool leftSide, bool lower,
                               bool unitDiagonal, std::size_t blockSize,
                               poplar::program::Sequence& prog,
                               const poplar::DebugContext& debugContext = {},
                               const poplar::OptionFlags& options = {},
                               PlanningCache* cache = nullptr);

/// The products of a solve to plan in advance: none.
std::vector<std::pair<MatMulParams, poplar::OptionFlags>> getTriangularSolveMatMulPrePlanParameters(
    const poplar::Type& inputType, const poplar::Type& outputType,
    const std::vector<std::size_t>& aShape, const std::vector<std::size_t>& bShape, bool leftSide,
    bool lower, const poplar::OptionFlags& options);
std::vector<std::pair<MatMulParams, poplar::OptionFlags>> getTriangularSolveMatMulPrePlanParameters(
    const poplar::Type& inputType, const poplar::Type& outputType,
    const std::vector<std::size_t>& aShape, const std::vector<std::size_t>& bShape, bool leftSide,
    bool lower, std::size_t blockSize, const poplar::OptionFlags& options);

}  // namespace poplin
