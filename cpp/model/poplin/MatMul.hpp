#pragma once
#include <iosfwd>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "poplin/PlanningCache.hpp"

namespace poplin {

/// A product to plan; options of nullptr are the defaults.
struct MatMulParams {
  poplar::Type inputType;
  poplar::Type outputType;
  std::vector<std::size_t> aShape;  ///< [G, M, K]
  std::vector<std::size_t> bShape;  ///< [G, K, N]

  friend bool operator<(const MatMulParams& a, const MatMulParams& b) {
    return std::tie(a.inputType, a.outputType, a.aShape, a.bShape) <
           std::tie(b.inputType, b.outputType, b.aShape, b.bShape);
  }
};
using MatMulPlanParams =
    std::tuple<const poplar::Target*, const MatMulParams, const poplar::OptionFlags*>;

/// A [M, K] x B [K, N] -> [M, N]. FLOAT and HALF run on the AMP units (options: partialsType,
/// availableMemoryProportion, fullyConnectedPass, use128BitConvUnitLoad ...). Integers, whose types
/// may differ, run as plain loops on the tiles; no Poplar library has these. The result is
/// row-major.
poplar::Tensor matMul(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B,
                      poplar::program::Sequence& prog, const poplar::Type& outputType,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);
poplar::Tensor matMul(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

/// A [G, M, K] x B [G, K, N] -> [G, M, N].
poplar::Tensor matMulGrouped(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B,
                             poplar::program::Sequence& prog, const poplar::Type& outputType,
                             const poplar::DebugContext& debugContext = {},
                             const poplar::OptionFlags& options = {},
                             PlanningCache* cache = nullptr);

/// The same into C.
void matMulWithOutput(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B,
                      poplar::Tensor& C, poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);
void matMulGroupedWithOutput(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B,
                             poplar::Tensor& C, poplar::program::Sequence& prog,
                             const poplar::DebugContext& debugContext = {},
                             const poplar::OptionFlags& options = {},
                             PlanningCache* cache = nullptr);

/// C += k * A x B, with k a number or a tensor of one element.
void matMulAcc(poplar::Graph& graph, const poplar::Tensor& C, float k, const poplar::Tensor& A,
               const poplar::Tensor& B, poplar::program::Sequence& prog,
               const poplar::DebugContext& debugContext = {},
               const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);
void matMulGroupedAcc(poplar::Graph& graph, const poplar::Tensor& C, float k,
                      const poplar::Tensor& A, const poplar::Tensor& B,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

void matMulAcc(poplar::Graph& graph, const poplar::Tensor& C, const poplar::Tensor& k,
               const poplar::Tensor& A, const poplar::Tensor& B, poplar::program::Sequence& prog,
               const poplar::DebugContext& debugContext = {},
               const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);
void matMulGroupedAcc(poplar::Graph& graph, const poplar::Tensor& C, const poplar::Tensor& k,
                      const poplar::Tensor& A, const poplar::Tensor& B,
                      poplar::program::Sequence& prog,
                      const poplar::DebugContext& debugContext = {},
                      const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

/// Row-major tensors, mapped as the plan of the product expects its operands.
poplar::Tensor createMatMulInputLHS(poplar::Graph& graph, const poplar::Type& inputType,
                                    const poplar::Type& outputType,
                                    const std::vector<std::size_t>& aShape,
                                    const std::vector<std::size_t>& bShape,
                                    const poplar::DebugContext& debugContext,
                                    const poplar::OptionFlags& options = {},
                                    PlanningCache* cache = nullptr);
poplar::Tensor createMatMulInputLHS(poplar::Graph& graph, const poplar::Type& dataType,
                                    const std::vector<std::size_t>& aShape,
                                    const std::vector<std::size_t>& bShape,
                                    const poplar::DebugContext& debugContext,
                                    const poplar::OptionFlags& options = {},
                                    PlanningCache* cache = nullptr);
poplar::Tensor createMatMulInputRHS(poplar::Graph& graph, const poplar::Type& inputType,
                                    const poplar::Type& outputType,
                                    const std::vector<std::size_t>& aShape,
                                    const std::vector<std::size_t>& bShape,
                                    const poplar::DebugContext& debugContext,
                                    const poplar::OptionFlags& options = {},
                                    PlanningCache* cache = nullptr);
poplar::Tensor createMatMulInputRHS(poplar::Graph& graph, const poplar::Type& dataType,
                                    const std::vector<std::size_t>& aShape,
                                    const std::vector<std::size_t>& bShape,
                                    const poplar::DebugContext& debugContext,
                                    const poplar::OptionFlags& options = {},
                                    PlanningCache* cache = nullptr);
poplar::Tensor createMatMulGroupedInputLHS(poplar::Graph& graph, const poplar::Type& inputType,
                                           const poplar::Type& outputType,
                                           const std::vector<std::size_t>& aShape,
                                           const std::vector<std::size_t>& bShape,
                                           const poplar::DebugContext& debugContext,
                                           const poplar::OptionFlags& options = {},
                                           PlanningCache* cache = nullptr);
poplar::Tensor createMatMulGroupedInputRHS(poplar::Graph& graph, const poplar::Type& inputType,
                                           const poplar::Type& outputType,
                                           const std::vector<std::size_t>& aShape,
                                           const std::vector<std::size_t>& bShape,
                                           const poplar::DebugContext& debugContext,
                                           const poplar::OptionFlags& options = {},
                                           PlanningCache* cache = nullptr);

/// Tensors for matMulWithOutput and matMulGroupedWithOutput.
poplar::Tensor createMatMulOutput(poplar::Graph& graph, const poplar::Type& inputType,
                                  const poplar::Type& outputType,
                                  const std::vector<std::size_t>& aShape,
                                  const std::vector<std::size_t>& bShape,
                                  const poplar::DebugContext& debugContext,
                                  const poplar::OptionFlags& options = {},
                                  PlanningCache* cache = nullptr);
poplar::Tensor createMatMulOutput(poplar::Graph& graph, const poplar::Type& dataType,
                                  const std::vector<std::size_t>& aShape,
                                  const std::vector<std::size_t>& bShape,
                                  const poplar::DebugContext& debugContext,
                                  const poplar::OptionFlags& options = {},
                                  PlanningCache* cache = nullptr);
poplar::Tensor createMatMulGroupedOutput(poplar::Graph& graph, const poplar::Type& inputType,
                                         const poplar::Type& outputType,
                                         const std::vector<std::size_t>& aShape,
                                         const std::vector<std::size_t>& bShape,
                                         const poplar::DebugContext& debugContext,
                                         const poplar::OptionFlags& options = {},
                                         PlanningCache* cache = nullptr);

/// A copy of B as the product expects it, for several products with the same B.
poplar::Tensor preArrangeMatMulInputRHS(poplar::Graph& graph,
                                        const std::vector<std::size_t>& aShape,
                                        const poplar::Tensor& B, poplar::program::Sequence& prog,
                                        const poplar::Type& outputType,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {},
                                        PlanningCache* cache = nullptr);
poplar::Tensor preArrangeMatMulInputRHS(poplar::Graph& graph,
                                        const std::vector<std::size_t>& aShape,
                                        const poplar::Tensor& B, poplar::program::Sequence& prog,
                                        const poplar::DebugContext& debugContext = {},
                                        const poplar::OptionFlags& options = {},
                                        PlanningCache* cache = nullptr);
poplar::Tensor preArrangeMatMulGroupedInputRHS(
    poplar::Graph& graph, const std::vector<std::size_t>& aShape, const poplar::Tensor& B,
    poplar::program::Sequence& prog, const poplar::Type& outputType,
    const poplar::DebugContext& debugContext = {}, const poplar::OptionFlags& options = {},
    PlanningCache* cache = nullptr);

/// [G, M, N] as [G, N, M], a view.
poplar::Tensor transposeGroupedMatrix(const poplar::Tensor& A);

/// Plans products before they are added, so that the cache has them.
void preplanMatMuls(const std::set<MatMulPlanParams>& matmuls, PlanningCache& cache);

/// Writes the plan of a product in one line.
void matMulReportPlan(std::ostream& out, const poplar::Graph& graph, const poplar::Type& inputType,
                      const poplar::Type& outputType, const std::vector<std::size_t>& aShape,
                      const std::vector<std::size_t>& bShape,
                      const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);
void matMulGroupedReportPlan(std::ostream& out, const poplar::Graph& graph,
                             const poplar::Type& inputType, const poplar::Type& outputType,
                             const std::vector<std::size_t>& aShape,
                             const std::vector<std::size_t>& bShape,
                             const poplar::OptionFlags& options = {},
                             PlanningCache* cache = nullptr);

/// Cycles of A [m, k] x B [k, n] with operands placed by the planner; not part of PopLibs.
double matMulCycles(const poplar::Target& target, std::size_t m, std::size_t k, std::size_t n,
                    const poplar::Type& type, const poplar::OptionFlags& options = {});

}  // namespace poplin
