#include "engine/graph/GraphImpl.hpp"

#include <algorithm>
#include <numeric>

namespace ipujax::engine {

GraphImpl::GraphImpl(System s) : system{std::move(s)}, all_tiles(system.numTiles()) {
  std::iota(all_tiles.begin(), all_tiles.end(), 0u);
}
GraphImpl::~GraphImpl() = default;

std::uint32_t GraphImpl::addVariable(ElementType type, std::uint64_t elements, TileMapPtr map,
                                     const DebugContext& debug) {
  variables.push_back({type, elements, debug, std::move(map), false, {}});
  return static_cast<std::uint32_t>(variables.size() - 1);
}

TileMapPtr GraphImpl::linearMap(ElementType type, std::uint64_t elements) {
  const std::size_t bytes = sizeOf(type);
  auto& map = linear_maps_[{bytes, elements}];
  if (!map)
    map = linearTileMap(elements, all_tiles, 128 / bytes, std::max<std::size_t>(8 / bytes, 1));
  return map;
}

ViewPtr GraphImpl::addLinear(ElementType type, std::vector<std::size_t> shape,
                             const DebugContext& debug) {
  View view = wholeVariable(0, type, std::move(shape));
  const std::uint64_t elements = view.numElements();
  view.variable = addVariable(type, elements, linearMap(type, elements), debug);
  return share(std::move(view));
}

}  // namespace ipujax::engine
