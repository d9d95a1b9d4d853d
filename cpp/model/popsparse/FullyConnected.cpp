#include "popsparse/FullyConnected.hpp"

#include "popops/DynamicSlice.hpp"
#include "popops/ScaledAdd.hpp"
#include "popsparse/Embedding.hpp"
#include "popsparse/internal/BlockProducts.hpp"
#include "poputil/exceptions.hpp"

namespace popsparse::dynamic {
namespace {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;
namespace internal = popsparse::internal;

void checkShape(const char* where, const Tensor& t, std::size_t rows, std::size_t columns) {
  if (t.shape() == std::vector<std::size_t>{rows, columns}) return;
  throw poputil::poplibs_error(std::string("[popsparse::") + where + "] needs [" +
                               std::to_string(rows) + ", " + std::to_string(columns) + "]; got " +
                               t.shapeToString() + ". Reshape the operand.");
}

/// Checks that the weights were made for the size of `params`; `values` may be invalid.
internal::Blocks weightsOf(const char* where, Graph& graph, const Tensor& metaInfo,
                           const Tensor& values, const FullyConnectedParams& params, Sequence& prog,
                           const DebugContext& di, const OptionFlags& options) {
  const auto size = internal::sizeOf(where, params, options);
  if (metaInfo.numElements() != 2 * size.capacity)
    throw poputil::poplibs_error(std::string("[popsparse::") + where +
                                 "] needs weights with room for " + std::to_string(size.capacity) +
                                 " blocks; got " + std::to_string(metaInfo.numElements() / 2) +
                                 ". Make the weights with the same parameters and options.");
  return internal::blocksOf(graph, size, metaInfo, values, prog, di);
}

}  // namespace

SparseTensor createFullyConnectedWeights(Graph& graph, const poplar::Type& inputType,
                                         const FullyConnectedParams& params,
                                         const DebugContext& debugContext,
                                         const OptionFlags& options, PlanningCache* /*cache*/) {
  auto pattern = std::make_unique<internal::Pattern>();
  pattern->size = internal::sizeOf("createFullyConnectedWeights", params, options);
  const auto n = pattern->size.capacity;
  const auto linear = poplar::VariableMappingMethod::LINEAR;
  const auto metaInfo =
      graph.addVariable(poplar::UNSIGNED_SHORT, {2 * n}, linear, {debugContext, "metaInfo"});
  const auto values = graph.addVariable(inputType, {n * pattern->size.blockSize()}, linear,
                                        {debugContext, "nzValues"});
  return {metaInfo, values, poputil::TensorMetaData(std::move(pattern))};
}

Tensor createFullyConnectedInput(Graph& graph, const poplar::Type& inputType,
                                 const FullyConnectedParams& params,
                                 const DebugContext& debugContext, const OptionFlags& options,
                                 PlanningCache* /*cache*/) {
  internal::sizeOf("createFullyConnectedInput", params, options);
  return graph.addVariable(inputType, {params.getBatchSize(), params.getInputChannels()},
                           poplar::VariableMappingMethod::LINEAR, debugContext);
}

Tensor fullyConnectedFwd(Graph& graph, const SparseTensor& weights, const Tensor& activations,
                         const FullyConnectedParams& fcParams, Sequence& prog,
                         const DebugContext& debugContext, const OptionFlags& options,
                         PlanningCache* /*cache*/) {
  const char* where = "fullyConnectedFwd";
  checkShape(where, activations, fcParams.getBatchSize(), fcParams.getInputChannels());
  const DebugContext di(debugContext, where);
  const auto w = weightsOf(where, graph, weights.getMetaInfoTensor(), weights.getNzValuesTensor(),
                           fcParams, prog, di, options);
  return internal::times(graph, w, activations.transpose(), prog, di).transpose();
}

Tensor fullyConnectedGradA(Graph& graph, const SparseTensor& weights, const Tensor& gradients,
                           const FullyConnectedParams& fcParams, Sequence& prog,
                           const DebugContext& debugContext, const OptionFlags& options,
                           PlanningCache* /*cache*/) {
  const char* where = "fullyConnectedGradA";
  checkShape(where, gradients, fcParams.getBatchSize(), fcParams.getOutputChannels());
  const DebugContext di(debugContext, where);
  const auto w = weightsOf(where, graph, weights.getMetaInfoTensor(), weights.getNzValuesTensor(),
                           fcParams, prog, di, options);
  return internal::times(graph, internal::transposed(w), gradients.transpose(), prog, di)
      .transpose();
}

Tensor fullyConnectedSparseGradW(Graph& graph, Tensor sparsityMetaInfo, const Tensor& gradA,
                                 const Tensor& activations, const FullyConnectedParams& fcParams,
                                 Sequence& prog, const DebugContext& debugContext,
                                 const OptionFlags& options, PlanningCache* /*cache*/) {
  const char* where = "fullyConnectedSparseGradW";
  checkShape(where, gradA, fcParams.getBatchSize(), fcParams.getOutputChannels());
  checkShape(where, activations, fcParams.getBatchSize(), fcParams.getInputChannels());
  const DebugContext di(debugContext, where);
  const auto w = weightsOf(where, graph, sparsityMetaInfo, Tensor(), fcParams, prog, di, options);
  return internal::sampledProduct(graph, w, gradA, activations, prog, di);
}

std::tuple<unsigned, unsigned, unsigned> fullyConnectedDenseGradWSerialSplits(
    const Graph& /*graph*/, const poplar::Type& /*inputType*/, const FullyConnectedParams& fcParams,
    const OptionFlags& options, PlanningCache* /*cache*/) {
  internal::sizeOf("fullyConnectedDenseGradWSerialSplits", fcParams, options);
  return {1, 1, 1};
}

Tensor createIndicesTensor(Graph& graph, const FullyConnectedParams& params, std::size_t numIndices,
                           const OptionFlags& options, const DebugContext& debugContext) {
  internal::sizeOf("createIndicesTensor", params, options);
  return graph.addVariable(poplar::UNSIGNED_INT, {numIndices},
                           poplar::VariableMappingMethod::LINEAR, debugContext);
}

Tensor createSliceTensor(Graph& graph, const poplar::Type& dataType,
                         const FullyConnectedParams& params, std::size_t numIndices,
                         const DebugContext& debugContext, const OptionFlags& options,
                         PlanningCache* /*cache*/) {
  internal::sizeOf("createSliceTensor", params, options);
  return graph.addVariable(dataType, {numIndices, params.getInputChannels()},
                           poplar::VariableMappingMethod::LINEAR, debugContext);
}

Tensor embeddingSlice(Graph& graph, const SparseTensor& t, const Tensor& indices, Sequence& prog,
                      const FullyConnectedParams& params, const DebugContext& debugContext,
                      const OptionFlags& options, PlanningCache* /*cache*/) {
  const DebugContext di(debugContext, "embeddingSlice");
  const auto w = weightsOf("embeddingSlice", graph, t.getMetaInfoTensor(), t.getNzValuesTensor(),
                           params, prog, di, options);
  const auto rows =
      popops::multiSlice(graph, internal::dense(graph, w, prog, di), indices.expand({1}), {0}, {1},
                         prog, popops::SlicePlan(), {}, di);
  return internal::asType(graph, rows.reshape({indices.dim(0), params.getInputChannels()}),
                          t.getNzValuesTensor().elementType(), prog, di);
}

void embeddingUpdateAdd(Graph& graph, const SparseTensor& t, const Tensor& slices,
                        const Tensor& indices, const Tensor& scale, Sequence& prog,
                        const FullyConnectedParams& params, const DebugContext& debugContext,
                        const OptionFlags& options, PlanningCache* /*cache*/) {
  const char* where = "embeddingUpdateAdd";
  checkShape(where, slices, indices.dim(0), params.getInputChannels());
  const DebugContext di(debugContext, where);
  const auto values = t.getNzValuesTensor();
  const auto w = weightsOf(where, graph, t.getMetaInfoTensor(), values, params, prog, di, options);
  const auto update =
      internal::zeros(graph, {params.getOutputChannels(), params.getInputChannels()}, prog, di);
  const auto rows = internal::asType(graph, slices, poplar::FLOAT, prog, di);
  const auto factor = internal::asType(graph, scale, poplar::FLOAT, prog, di);
  popops::multiUpdateAdd(graph, update, rows.expand({1}), indices.expand({1}), factor, {0}, {1},
                         prog, popops::SlicePlan(), {}, di);
  const auto added = internal::sampled(graph, w, update, prog, di).flatten();
  popops::scaledAddTo(graph, values, internal::asType(graph, added, values.elementType(), prog, di),
                      1.0F, prog, di);
}

}  // namespace popsparse::dynamic
