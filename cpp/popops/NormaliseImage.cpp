#include "popops/NormaliseImage.hpp"

#include <string>

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
  // Offsets and scales of a line of pixels, so that lines are computed at once.
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
