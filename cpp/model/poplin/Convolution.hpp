#pragma once
#include <cstddef>
#include <iosfwd>
#include <set>
#include <tuple>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"
#include "poplin/ConvParams.hpp"
#include "poplin/ConvUtil.hpp"
#include "poplin/PlanningCache.hpp"

namespace poplin {

/// A convolution to plan; options of nullptr are the defaults.
using ConvPlanParams =
    std::tuple<const poplar::Target*, const ConvParams, const poplar::OptionFlags*>;

/// Cycles of a pass's products alone, at the full rate of all AMP units.
double getFwdPerfectCycleCount(const poplar::Graph& graph, const ConvParams& params);
double getBwdPerfectCycleCount(const poplar::Graph& graph, const ConvParams& params);
double getWuPerfectCycleCount(const poplar::Graph& graph, const ConvParams& params);

/// Weights [G, Co, Ci, kernel...] and input [N, G*Ci, field...] of a convolution: row-major
/// variables, mapped as its plan expects its operands.
poplar::Tensor createWeights(poplar::Graph& graph, const ConvParams& params,
                             const poplar::DebugContext& debugContext = {},
                             const poplar::OptionFlags& options = {},
                             PlanningCache* cache = nullptr);
poplar::Tensor createInput(poplar::Graph& graph, const ConvParams& params,
                           const poplar::DebugContext& debugContext = {},
                           const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

/// The biases [G*Co] of a convolution's result [N, G*Co, field...], each on a tile that has
/// elements of its channel.
poplar::Tensor createBiases(poplar::Graph& graph, const poplar::Tensor& activations,
                            const poplar::DebugContext& debugContext = {"biases"});
poplar::Tensor createBiases(poplar::Graph& graph, const poplar::Tensor& activations,
                            const ConvParams& params,
                            const poplar::DebugContext& debugContext = {"biases"},
                            const poplar::OptionFlags& options = {},
                            PlanningCache* cache = nullptr);
/// A tensor for convolutionWithOutput: [N, G*Co, output field...].
poplar::Tensor createConvOutput(poplar::Graph& graph, const ConvParams& params,
                                const poplar::DebugContext& debugContext = {},
                                const poplar::OptionFlags& options = {},
                                PlanningCache* cache = nullptr);

/// in [N, G*Ci, field...], weights [G, Co, Ci, kernel...] -> [N, G*Co, output field...]. With
/// transposeAndFlipWeights the weights are those of the forward pass, [G, Ci, Co, kernel...] in
/// this call's terms. The result is a view; its memory follows the input's order of dimensions.
poplar::Tensor convolution(poplar::Graph& graph, const poplar::Tensor& in,
                           const poplar::Tensor& weights, const ConvParams& params,
                           bool transposeAndFlipWeights, poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext = {},
                           const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

/// The same into `out`.
void convolutionWithOutput(poplar::Graph& graph, const poplar::Tensor& in,
                           const poplar::Tensor& weights, const poplar::Tensor& out,
                           const ConvParams& params, bool transposeAndFlipWeights,
                           poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext = {},
                           const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

/// Copies weights [G, Co, Ci, kernel...] to [G, Ci, Co, kernel...] with each kernel flipped.
void weightsTransposeChansFlipXY(poplar::Graph& graph, const poplar::Tensor& weightsIn,
                                 const poplar::Tensor& weightsOut, poplar::program::Sequence& prog,
                                 const poplar::DebugContext& debugContext = {});

/// The gradient [G, Co, Ci, kernel...] of the weights of the convolution `params`.
poplar::Tensor calculateWeightDeltas(poplar::Graph& graph, const poplar::Tensor& zDeltas,
                                     const poplar::Tensor& activations, const ConvParams& params,
                                     poplar::program::Sequence& prog,
                                     const poplar::DebugContext& debugContext = {},
                                     const poplar::OptionFlags& options = {},
                                     PlanningCache* cache = nullptr);

/// weights += scale * calculateWeightDeltas(...).
void convolutionWeightUpdate(poplar::Graph& graph, const poplar::Tensor& zDeltas,
                             const poplar::Tensor& weights, const poplar::Tensor& activations,
                             ConvParams params, const poplar::Tensor& scale,
                             poplar::program::Sequence& prog,
                             const poplar::DebugContext& debugContext = {},
                             const poplar::OptionFlags& options = {},
                             PlanningCache* cache = nullptr);
void convolutionWeightUpdate(poplar::Graph& graph, const poplar::Tensor& zDeltas,
                             const poplar::Tensor& weights, const poplar::Tensor& activations,
                             ConvParams params, float scale, poplar::program::Sequence& prog,
                             const poplar::DebugContext& debugContext = {},
                             const poplar::OptionFlags& options = {},
                             PlanningCache* cache = nullptr);

/// biases [G*Co] += scale * the sum of zDeltas [N, G*Co, field...] over all other dimensions.
void convolutionBiasUpdate(poplar::Graph& graph, const poplar::Tensor& zDeltas,
                           const poplar::Tensor& biases, const poplar::Tensor& scale,
                           const poplar::OptionFlags& options, poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext = {});
void convolutionBiasUpdate(poplar::Graph& graph, const poplar::Tensor& zDeltas,
                           const poplar::Tensor& biases, float scale,
                           const poplar::OptionFlags& options, poplar::program::Sequence& prog,
                           const poplar::DebugContext& debugContext = {});

/// in [N, G*Co, field...] += biases [G*Co].
void addBias(poplar::Graph& graph, const poplar::Tensor& in, const poplar::Tensor& biases,
             poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
             const poplar::OptionFlags& options = {});

/// The weights of the backward pass of a convolution that is a matrix product, [G, Ci, Co, 1...].
poplar::Tensor fullyConnectedWeightTranspose(poplar::Graph& graph, poplar::Tensor weights,
                                             const ConvParams& params,
                                             poplar::program::Sequence& prog,
                                             const poplar::DebugContext& debugContext = {},
                                             const poplar::OptionFlags& options = {},
                                             PlanningCache* cache = nullptr);

/// Plans convolutions before they are added, so that the cache has them.
void preplanConvolutions(const std::set<ConvPlanParams>& convs, PlanningCache& cache);
void preplanConvolutions(poplar::Graph& graph, const std::set<ConvPlanParams>& convs,
                         PlanningCache& cache);

/// Throws invalid_option for options that convolutions do not have.
void convolutionValidateOptions(const poplar::OptionFlags& options);

/// The estimated costs of a convolution's plan.
struct PlanCosts {
  /// Stands for costs that the plan does not separate.
  static constexpr std::size_t unknown = static_cast<std::size_t>(-1);
  std::size_t cycles = 0;
  std::size_t memory = 0;  ///< bytes of temporaries on the fullest tile
};
PlanCosts reportPlanEstimatedCosts(const poplar::Graph& graph, const ConvParams& params,
                                   const poplar::OptionFlags& options = {},
                                   PlanningCache* cache = nullptr);

namespace internal {

/// The same by stages. The model's plans separate compute (with later additions), exchange (with
/// syncs) and the bytes of rearranged operands.
struct DetailedPlanCosts {
  std::size_t parallelSplit = 1;  ///< tiles that compute
  std::size_t serialSplit = 1;    ///< slices processed one after another
  PlanCosts broadcast, rearrangement, dynamicSlice, transform, exchange, tileLevelTransform,
      inputsCast, compute, reduction, dynamicUpdate, addInPlace, outputCast, total;

  /// Calls function(costs) for each stage and, if asked for, for their total.
  template <typename Function>
  void apply(Function function, bool includeTotal = true) {
    applyTo(*this, function, includeTotal);
  }
  template <typename Function>
  void apply(Function function, bool includeTotal = true) const {
    applyTo(*this, function, includeTotal);
  }

 private:
  template <typename Costs, typename Function>
  static void applyTo(Costs& costs, Function& function, bool includeTotal) {
    for (auto* stage :
         {&costs.broadcast, &costs.rearrangement, &costs.dynamicSlice, &costs.transform,
          &costs.exchange, &costs.tileLevelTransform, &costs.inputsCast, &costs.compute,
          &costs.reduction, &costs.dynamicUpdate, &costs.addInPlace, &costs.outputCast})
      function(*stage);
    if (includeTotal) function(costs.total);
  }
};

DetailedPlanCosts reportDetailedPlanEstimatedCosts(const poplar::Graph& graph,
                                                   const ConvParams& params,
                                                   const poplar::OptionFlags& options = {},
                                                   PlanningCache* cache = nullptr);

}  // namespace internal

void reportWeightUpdatePlanInfo(std::ostream& out, const poplar::Graph& graph,
                                const ConvParams& fwdParams,
                                const poplar::OptionFlags& fwdOptions = {},
                                PlanningCache* cache = nullptr);
void reportPlanInfo(std::ostream& out, const poplar::Graph& graph, const ConvParams& params,
                    const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

}  // namespace poplin
