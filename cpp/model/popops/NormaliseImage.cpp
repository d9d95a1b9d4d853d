#include "popops/NormaliseImage.hpp"

#include <string>

#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Zero.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace popops {
namespace {

constexpr std::size_t kChannels = 3;

void checkImage(const char* where, const poplar::Type& type,
                const std::vector<std::size_t>& shape) {
  const bool is_known =
      type == poplar::UNSIGNED_CHAR || type == poplar::HALF || type == poplar::FLOAT;
  if (is_known && !shape.empty() && shape.back() == kChannels) return;
  throw poputil::poplibs_error(std::string("[popops::") + where +
                               "] needs an image [..., 3] of UNSIGNED_CHAR, HALF or FLOAT; got " +
                               type.toString() + " with " +
                               (shape.empty() ? "no" : std::to_string(shape.back())) +
                               " channels. Move the channels to the last dimension.");
}

/// popops: NormaliseImage takes 8, 11 or 17 worker cycles per pixel, for FLOAT, HALF and
/// UNSIGNED_CHAR; the rest is our estimate.
ipujax::engine::Cost costOf(const poplar::Graph& graph, const poplar::Tensor& image,
                            const poplar::Tensor& offsets, const poplar::Tensor& out) {
  ipujax::engine::Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = ipujax::engine::placementOf(graph, out);
  const auto type = image.elementType();
  const double per_pixel = type == poplar::FLOAT ? 8 : type == poplar::HALF ? 11 : 17;
  const auto pixels = static_cast<double>(ipujax::engine::ceilDiv(
      placed.max_elements_per_tile, (kChannels + 1) * target.getNumWorkerContexts()));
  auto exchange =
      ipujax::engine::exchangeBetween(graph, image, out.slice(0, kChannels, out.rank() - 1));
  const double scales =
      2.0 * kChannels * static_cast<double>(target.getTypeSize(offsets.elementType()));
  exchange.worst_tile_bytes += scales;
  exchange.bytes += scales * static_cast<double>(placed.tiles_used);
  addExchange(cost, target, exchange);
  addComputeSet(cost, target, 11 + 6 * (20 + per_pixel * pixels), placed.tiles_used);
  cost.vertex_state_bytes = 24;
  cost.code_bytes = 150;
  return cost;
}

/// Whether one vertex rounds correctly: halves follow IEEE. Otherwise popops::map does the work.
bool roundsAsUsual(const poplar::Graph& graph, const poplar::Type& type) {
  using ipujax::engine::HalfBehaviour;
  return type == poplar::FLOAT || graph.impl().half == HalfBehaviour{};
}

}  // namespace

poplar::Tensor createNormaliseImageInput(poplar::Graph& graph, const poplar::Type& type,
                                         poplar::ArrayRef<std::size_t> shape,
                                         const poplar::DebugContext& debugContext) {
  checkImage("createNormaliseImageInput", type, shape.cloneAsVector());
  const auto image = graph.addVariable(type, shape, debugContext);
  poputil::mapTensorLinearly(graph, image, 0, kChannels);
  return image;
}

poplar::Tensor normaliseImage(poplar::Graph& graph, poplar::program::Sequence& seq,
                              poplar::Tensor tIn, float inScale, poplar::Tensor offsets,
                              poplar::Tensor scales, const poplar::DebugContext& debugContext) {
  checkImage("normaliseImage", tIn.elementType(), tIn.shape());
  const auto type = tIn.elementType() == poplar::UNSIGNED_CHAR ? poplar::HALF : tIn.elementType();
  for (const auto& t : {offsets, scales}) {
    if (t.rank() == 1 && t.dim(0) == kChannels && t.elementType() == type) continue;
    throw poputil::poplibs_error("[popops::normaliseImage] needs offsets and scales [3] of " +
                                 type.toString() + "; got " + t.shapeToString() + " of " +
                                 t.elementType().toString() + ". Cast them.");
  }
  const poplar::DebugContext context{debugContext, "normaliseImage"};
  auto shape = tIn.shape();
  shape.back() = kChannels + 1;
  const auto out = graph.addVariable(type, shape, context);
  poputil::mapTensorLinearly(graph, out, 0, kChannels + 1);
  const unsigned last = static_cast<unsigned>(shape.size()) - 1;
  const auto size = tIn.numElements();
  if (size == 0) return out;
  if (roundsAsUsual(graph, type)) {
    using ipujax::engine::Access;
    ipujax::engine::StepSpec step;
    step.kernel = "popops.normalise_image";
    const auto pixels = size / kChannels;
    step.operands = {{tIn.reshape({pixels, kChannels}), Access::kRead, true},
                     {offsets, Access::kRead},
                     {scales, Access::kRead},
                     {out.reshape({pixels, kChannels + 1}), Access::kWrite, true}};
    step.attributes.set("scale", static_cast<double>(inScale));
    step.cost = costOf(graph, tIn, offsets, out);
    ipujax::engine::emit(graph, seq, std::move(step), context);
    return out;
  }
  // Repeat offsets and scales for a line of pixels, so that each line is computed at once.
  const auto line = last > 0 ? tIn.dim(last - 1) : 1;
  const auto ofLine = [&](const poplar::Tensor& t) {
    const auto wide = graph.addVariable(type, {line * kChannels}, context);
    poputil::mapTensorLinearly(graph, wide, 0, kChannels);
    seq.add(
        poplar::program::Copy(t.broadcast(static_cast<unsigned>(line), 0), wide, false, context));
    return wide;
  };
  const auto lines = tIn.reshape({size / (line * kChannels), line * kChannels});
  const expr::Cast pixel(expr::_1, type);
  const auto made = map(graph, (pixel * expr::Const(inScale) - expr::_2) * expr::_3,
                        {lines, ofLine(offsets), ofLine(scales)}, seq, context);
  seq.add(poplar::program::Copy(made.reshape(tIn.shape()), out.slice(0, kChannels, last), false,
                                context));
  zero(graph, out.slice(kChannels, kChannels + 1, last), seq, context);
  return out;
}

}  // namespace popops
