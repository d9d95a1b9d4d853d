#include "popops/TopK.hpp"

#include "engine/graph/Emit.hpp"
#include "popops/internal/Sort.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace popops {

namespace {

namespace engine = ipujax::engine;

[[noreturn]] void refuse(const std::string& needs, const std::string& got, const std::string& fix) {
  throw poputil::poplibs_error("[popops::topK] needs " + needs + "; got " + got + ". " + fix);
}

void check(const poplar::Tensor& t, const TopKParams& params) {
  if (t.rank() == 0) refuse("a tensor of rank 1 or more", t.shapeToString(), "Expand it.");
  const std::size_t n = t.dim(t.rank() - 1);
  if (params.k > n) {
    refuse("k of at most the last dimension, " + std::to_string(n), std::to_string(params.k),
           "Ask for fewer.");
  }
  if (sizeOf(t.elementType().element()) > 4) {
    refuse("elements of at most 32 bits", t.elementType().toString(), "Cast them.");
  }
}

/// The selected elements, and the second result that `extra` names: "", "indices" or "values".
std::pair<poplar::Tensor, poplar::Tensor> emitTopK(
    poplar::Graph& graph, poplar::program::Sequence& prog, const poplar::Tensor& keys,
    const poplar::Tensor* values, const std::string& extra, const TopKParams& params,
    const poplar::DebugContext& debugContext) {
  check(keys, params);
  auto shape = keys.shape();
  const std::size_t n = shape.back();
  shape.back() = params.k;
  poplar::Tensor selected =
      graph.addVariable(keys.elementType(), shape, {debugContext, "topK/keys"});
  poputil::mapTensorLinearly(graph, selected);
  engine::StepSpec spec;
  spec.kernel = "popops.topk";
  spec.operands = {{keys, engine::Access::kRead, false}, {selected, engine::Access::kWrite, true}};
  poplar::Tensor second;
  std::size_t bytes = graph.getTarget().getTypeSize(keys.elementType());
  if (!extra.empty()) {
    const poplar::Type type = values ? values->elementType() : poplar::UNSIGNED_INT;
    second = graph.addVariable(type, shape, {debugContext, "topK/" + extra});
    poputil::mapTensorLinearly(graph, second);
    if (values) spec.operands.push_back({*values, engine::Access::kRead, false});
    spec.operands.push_back({second, engine::Access::kWrite, true});
    bytes += graph.getTarget().getTypeSize(type);
  }
  // Unsorted results may come in any order; sorted ones best first, or last.
  const bool best_first = params.largest == (params.sortOrder != SortOrder::ASCENDING);
  const bool reversed = params.sortOrder != SortOrder::NONE && !best_first;
  spec.attributes.set("k", std::int64_t{params.k})
      .set("largest", std::int64_t{params.largest})
      .set("reversed", std::int64_t{reversed})
      .set("extra", extra);
  const std::uint64_t rows = n == 0 ? 0 : keys.numElements() / n;
  spec.cost = internal::bitonicCost(graph, rows, n, params.k, bytes, extra.empty() ? 13 : 17);
  engine::emit(graph, prog, std::move(spec), {debugContext, "topK"});
  return {selected, second};
}

}  // namespace

std::ostream& operator<<(std::ostream& os, const TopKParams& p) {
  return os << "{k=" << p.k << ", largest=" << (p.largest ? "true" : "false")
            << ", sortOrder=" << p.sortOrder << ", stableSort=" << (p.stableSort ? "true" : "false")
            << "}";
}

poplar::Tensor createTopKInput(poplar::Graph& graph, const poplar::Type& type,
                               const std::vector<std::size_t>& shape, const TopKParams&,
                               const poplar::DebugContext& debugContext) {
  poplar::Tensor t = graph.addVariable(type, shape, {debugContext, "topK/input"});
  poputil::mapTensorLinearly(graph, t);
  return t;
}

poplar::Tensor topK(poplar::Graph& graph, poplar::program::Sequence& prog, const poplar::Tensor& t,
                    const TopKParams& params, const poplar::DebugContext& debugContext) {
  return emitTopK(graph, prog, t, nullptr, "", params, debugContext).first;
}

std::pair<poplar::Tensor, poplar::Tensor> topKKeyValue(poplar::Graph& graph,
                                                       poplar::program::Sequence& prog,
                                                       const poplar::Tensor& keys,
                                                       const poplar::Tensor& values,
                                                       const TopKParams& params,
                                                       const poplar::DebugContext& debugContext) {
  if (values.shape() != keys.shape()) {
    refuse("values of the keys' shape " + keys.shapeToString(), values.shapeToString(),
           "Broadcast them.");
  }
  return emitTopK(graph, prog, keys, &values, "values", params, debugContext);
}

std::pair<poplar::Tensor, poplar::Tensor> topKWithPermutation(
    poplar::Graph& graph, poplar::program::Sequence& prog, const poplar::Tensor& t,
    const TopKParams& params, const poplar::DebugContext& debugContext) {
  return emitTopK(graph, prog, t, nullptr, "indices", params, debugContext);
}

}  // namespace popops
