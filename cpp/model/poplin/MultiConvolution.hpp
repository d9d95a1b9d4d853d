#pragma once
#include <string>
#include <type_traits>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplin/Convolution.hpp"

/// Several convolutions as one operation. Each is planned by itself, for all tiles, and they run
/// one after another: planType (serial, parallel), perConvReservedTiles and cycleBackOff, which say
/// how they share tiles, have no effect. Others throw invalid_option.
namespace poplin::multiconv {

struct CreateTensorArgs {
  ConvParams params;
  poplar::OptionFlags options;
  std::string name;
};

/// The tensors of the convolution args[index].
poplar::Tensor createWeights(poplar::Graph& graph, const std::vector<CreateTensorArgs>& args,
                             unsigned weightsIndex, const poplar::OptionFlags& options = {},
                             PlanningCache* cache = nullptr);
poplar::Tensor createInput(poplar::Graph& graph, const std::vector<CreateTensorArgs>& args,
                           unsigned inputIndex, const poplar::OptionFlags& options = {},
                           PlanningCache* cache = nullptr);

struct ConvolutionArgs {
  poplar::Tensor inputs;
  poplar::Tensor weights;
  ConvParams params;
  poplar::OptionFlags options;
};
std::vector<poplar::Tensor> convolution(
    poplar::Graph& graph, const std::vector<ConvolutionArgs>& args, bool transposeAndFlipWeights,
    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
    const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

/// Copies each of `weightsIn` to the weights of its convolution, transposed and flipped.
void weightsTransposeChansFlipXY(poplar::Graph& graph, std::vector<ConvolutionArgs>& args,
                                 const std::vector<poplar::Tensor>& weightsIn,
                                 poplar::program::Sequence& prog,
                                 const poplar::OptionFlags& options,
                                 const poplar::DebugContext& debugContext, PlanningCache* cache);

struct CalculateWeightDeltasArgs {
  poplar::Tensor zDeltas;
  poplar::Tensor activations;
  ConvParams params;
  poplar::OptionFlags options;
};
std::vector<poplar::Tensor> calculateWeightDeltas(
    poplar::Graph& graph, const std::vector<CalculateWeightDeltasArgs>& args,
    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
    const poplar::OptionFlags& options = {}, PlanningCache* cache = nullptr);

/// weights += scale * deltas, for each; the scale is a tensor or a number.
template <class Scale>
struct ConvWeightUpdateArgsOf {
  poplar::Tensor zDeltas;
  poplar::Tensor weights;
  poplar::Tensor activations;
  Scale scale;
  ConvParams params;
  poplar::OptionFlags options;
};
using ConvWeightUpdateArgs = ConvWeightUpdateArgsOf<poplar::Tensor>;
using ConvWeightUpdateArgsScalar = ConvWeightUpdateArgsOf<float>;
void convolutionWeightUpdate(poplar::Graph& graph, const std::vector<ConvWeightUpdateArgs>& args,
                             poplar::program::Sequence& prog,
                             const poplar::DebugContext& debugContext = {},
                             const poplar::OptionFlags& options = {},
                             PlanningCache* cache = nullptr);
void convolutionWeightUpdate(poplar::Graph& graph,
                             const std::vector<ConvWeightUpdateArgsScalar>& args,
                             poplar::program::Sequence& prog,
                             const poplar::DebugContext& debugContext = {},
                             const poplar::OptionFlags& options = {},
                             PlanningCache* cache = nullptr);

/// SDK 1.3's forms: the tensors of all convolutions, and no options for all of them.
/// Templates, so that a literal 0 still means the index of the form above.
template <class Cache, class = std::enable_if_t<std::is_same_v<Cache, PlanningCache>>>
std::vector<poplar::Tensor> createWeights(poplar::Graph& graph,
                                          const std::vector<CreateTensorArgs>& args, Cache* cache) {
  std::vector<poplar::Tensor> all;
  for (unsigned i = 0; i < args.size(); ++i)
    all.push_back(createWeights(graph, args, i, {}, cache));
  return all;
}
template <class Cache, class = std::enable_if_t<std::is_same_v<Cache, PlanningCache>>>
std::vector<poplar::Tensor> createInput(poplar::Graph& graph,
                                        const std::vector<CreateTensorArgs>& args, Cache* cache) {
  std::vector<poplar::Tensor> all;
  for (unsigned i = 0; i < args.size(); ++i) all.push_back(createInput(graph, args, i, {}, cache));
  return all;
}
inline std::vector<poplar::Tensor> createWeights(poplar::Graph& graph,
                                                 const std::vector<CreateTensorArgs>& args) {
  return createWeights(graph, args, static_cast<PlanningCache*>(nullptr));
}
inline std::vector<poplar::Tensor> createInput(poplar::Graph& graph,
                                               const std::vector<CreateTensorArgs>& args) {
  return createInput(graph, args, static_cast<PlanningCache*>(nullptr));
}
inline std::vector<poplar::Tensor> convolution(poplar::Graph& graph,
                                               const std::vector<ConvolutionArgs>& args,
                                               bool transposeAndFlipWeights,
                                               poplar::program::Sequence& prog,
                                               const poplar::DebugContext& debugContext,
                                               PlanningCache* cache) {
  return convolution(graph, args, transposeAndFlipWeights, prog, debugContext,
                     poplar::OptionFlags{}, cache);
}
inline std::vector<poplar::Tensor> calculateWeightDeltas(
    poplar::Graph& graph, const std::vector<CalculateWeightDeltasArgs>& args,
    poplar::program::Sequence& prog, const poplar::DebugContext& debugContext,
    PlanningCache* cache) {
  return calculateWeightDeltas(graph, args, prog, debugContext, poplar::OptionFlags{}, cache);
}
inline void convolutionWeightUpdate(poplar::Graph& graph,
                                    const std::vector<ConvWeightUpdateArgs>& args,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext,
                                    PlanningCache* cache) {
  convolutionWeightUpdate(graph, args, prog, debugContext, poplar::OptionFlags{}, cache);
}
inline void convolutionWeightUpdate(poplar::Graph& graph,
                                    const std::vector<ConvWeightUpdateArgsScalar>& args,
                                    poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext,
                                    PlanningCache* cache) {
  convolutionWeightUpdate(graph, args, prog, debugContext, poplar::OptionFlags{}, cache);
}

}  // namespace poplin::multiconv
