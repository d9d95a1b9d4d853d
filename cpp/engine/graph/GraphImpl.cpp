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
  variables.push_back({type, elements, debug, std::move(map), false, false, {}});
  return static_cast<std::uint32_t>(variables.size() - 1);
}

TileMapPtr GraphImpl::linearMap(ElementType type, std::uint64_t elements,
                                const std::vector<unsigned>& tiles) {
  const std::size_t bytes = sizeOf(type);
  TileMapPtr made;
  TileMapPtr& map = &tiles == &all_tiles ? linear_maps_[{bytes, elements}] : made;
  if (!map) map = linearTileMap(elements, tiles, 128 / bytes, std::max<std::size_t>(8 / bytes, 1));
  return map;
}

Variable* GraphImpl::variableOfAll(const View& view) {
  if (!view.isContiguous()) return nullptr;
  Variable& variable = variables[view.variable];
  return variable.elements == view.numElements() ? &variable : nullptr;
}

ViewPtr GraphImpl::addLinear(ElementType type, std::vector<std::size_t> shape,
                             const DebugContext& debug) {
  View view = wholeVariable(0, type, std::move(shape));
  const std::uint64_t elements = view.numElements();
  view.variable = addVariable(type, elements, linearMap(type, elements, all_tiles), debug);
  return share(std::move(view));
}

ViewPtr GraphImpl::addRemote(ElementType type, std::vector<std::size_t> shape,
                             const DebugContext& debug) {
  View view = wholeVariable(0, type, std::move(shape));
  const std::uint64_t elements = view.numElements();
  view.variable = addVariable(type, elements, unmapped(elements), debug);
  variables.back().is_remote = true;
  return share(std::move(view));
}

bool GraphImpl::isRemote(const View& view) const {
  return view.isStrided() && variables[view.variable].is_remote;
}

}  // namespace ipujax::engine
