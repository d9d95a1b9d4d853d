#include "poplin/Convolution.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Reduce.hpp"
#include "popops/ScaledAdd.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

/// Biases of convolutions, and updates of weights and biases.
namespace poplin {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Sequence;

void checkBiases(const char* where, const Tensor& activations, const Tensor& biases) {
  if (activations.rank() >= 2 && biases.rank() == 1 && biases.dim(0) == activations.dim(1)) return;
  throw poputil::poplibs_error(std::string("[poplin::") + where +
                               "] needs activations [N, channels, field...] and biases "
                               "[channels]; got " +
                               activations.shapeToString() + " and " + biases.shapeToString() +
                               ". Reshape them.");
}

/// The sum of zDeltas over all dimensions but channels, in float.
Tensor biasDeltas(Graph& graph, const Tensor& deltas, const Tensor& biases, Sequence& prog,
                  const DebugContext& debugContext) {
  checkBiases("convolutionBiasUpdate", deltas, biases);
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < deltas.rank(); ++d)
    if (d != 1) dims.push_back(d);
  return popops::reduce(graph, deltas, biases.elementType(), dims, popops::Operation::ADD, prog,
                        debugContext);
}

template <class Scale>
void updateWeights(Graph& graph, const Tensor& deltas, const Tensor& weights, const Tensor& in,
                   const ConvParams& params, const Scale& scale, Sequence& prog,
                   const DebugContext& debugContext, const OptionFlags& options,
                   PlanningCache* cache) {
  const DebugContext context{debugContext, "convolutionWeightUpdate"};
  const Tensor found =
      calculateWeightDeltas(graph, deltas, in, params, prog, context, options, cache);
  popops::scaledAddTo(graph, weights, found, scale, prog, context);
}

template <class Scale>
void updateBiases(Graph& graph, const Tensor& deltas, const Tensor& biases, const Scale& scale,
                  Sequence& prog, const DebugContext& debugContext) {
  const DebugContext context{debugContext, "convolutionBiasUpdate"};
  popops::scaledAddTo(graph, biases, biasDeltas(graph, deltas, biases, prog, context), scale, prog,
                      context);
}

}  // namespace

Tensor createBiases(Graph& graph, const Tensor& activations, const DebugContext& debugContext) {
  return poputil::createBroadcastOperand(graph, activations, activations.elementType(), 1, false,
                                         debugContext);
}

Tensor createBiases(Graph& graph, const Tensor& activations, const ConvParams&,
                    const DebugContext& debugContext, const OptionFlags&, PlanningCache*) {
  return createBiases(graph, activations, debugContext);
}

void addBias(Graph& graph, const Tensor& in, const Tensor& biases, Sequence& prog,
             const DebugContext& debugContext, const OptionFlags&) {
  checkBiases("addBias", in, biases);
  std::vector<std::size_t> shape(in.rank() - 1, 1);
  shape[0] = biases.dim(0);
  popops::addInPlace(graph, in, biases.reshape(shape), prog, {debugContext, "addBias"});
}

void weightsTransposeChansFlipXY(Graph&, const Tensor& weightsIn, const Tensor& weightsOut,
                                 Sequence& prog, const DebugContext& debugContext) {
  Tensor flipped = weightsIn.dimShufflePartial({1, 2}, {2, 1});
  for (unsigned d = 3; d < flipped.rank(); ++d) flipped = flipped.reverse(d);
  prog.add(Copy(flipped, weightsOut, false, {debugContext, "weightsTransposeChansFlipXY"}));
}

void convolutionWeightUpdate(Graph& graph, const Tensor& zDeltas, const Tensor& weights,
                             const Tensor& activations, ConvParams params, const Tensor& scale,
                             Sequence& prog, const DebugContext& debugContext,
                             const OptionFlags& options, PlanningCache* cache) {
  updateWeights(graph, zDeltas, weights, activations, params, scale, prog, debugContext, options,
                cache);
}

void convolutionWeightUpdate(Graph& graph, const Tensor& zDeltas, const Tensor& weights,
                             const Tensor& activations, ConvParams params, float scale,
                             Sequence& prog, const DebugContext& debugContext,
                             const OptionFlags& options, PlanningCache* cache) {
  updateWeights(graph, zDeltas, weights, activations, params, scale, prog, debugContext, options,
                cache);
}

void convolutionBiasUpdate(Graph& graph, const Tensor& zDeltas, const Tensor& biases,
                           const Tensor& scale, const OptionFlags&, Sequence& prog,
                           const DebugContext& debugContext) {
  updateBiases(graph, zDeltas, biases, scale, prog, debugContext);
}

void convolutionBiasUpdate(Graph& graph, const Tensor& zDeltas, const Tensor& biases, float scale,
                           const OptionFlags&, Sequence& prog, const DebugContext& debugContext) {
  updateBiases(graph, zDeltas, biases, scale, prog, debugContext);
}

}  // namespace poplin
