#include "engine/account/TripCounts.hpp"

namespace ipujax::engine {

Cost Image::cost() const { return costOf(0); }

Cost Image::costOf(std::uint32_t node) const { return engine::costOf(*this, node); }

Image::UnknownLoops Image::unknownLoops() const {
  UnknownLoops loops;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind != NodeKind::kRepeatWhile) continue;
    ++loops.count;
    for (const auto child : nodes[i].children) loops.iteration_cycles += costOf(child).cycles();
  }
  return loops;
}

}  // namespace ipujax::engine
