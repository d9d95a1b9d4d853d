#include "engine/graph/GraphImpl.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace ipujax::engine {
namespace {

/// Number of tiles of an IPU where layout groups begin: 23 apart on a Mk2, so that few tiles differ
/// in what they hold and the account of memory stays quick.
constexpr std::size_t kStarts = 64;

}  // namespace

GraphImpl::GraphImpl(System s)
    : system{std::move(s)}, all_tiles(system.numTiles()), counted_exchanges(system) {
  std::iota(all_tiles.begin(), all_tiles.end(), 0u);
  const std::ptrdiff_t per_ipu = system.machine.tiles_per_ipu;
  for (auto first = all_tiles.begin(); first != all_tiles.end(); first += per_ipu)
    ipu_tiles_.emplace_back(first, first + per_ipu);
}
GraphImpl::~GraphImpl() = default;

std::uint32_t GraphImpl::addVariable(ElementType type, std::uint64_t elements, TileMapPtr map,
                                     const DebugContext& debug) {
  variables.push_back({type, elements, debug, std::move(map)});
  variables.back().parts = parts;
  return static_cast<std::uint32_t>(variables.size() - 1);
}

std::size_t GraphImpl::startOf(const std::vector<unsigned>& tiles, std::uint64_t used) {
  if (layout_group == 0 || used == tiles.size()) return 0;
  const Range range{tiles.front(), tiles.size()};
  const auto [found, is_new] = starts_.try_emplace({range, layout_group});
  if (is_new) {
    std::size_t& next = next_start_[range];
    found->second = next;
    const std::size_t step = std::max<std::size_t>(tiles.size() / kStarts, 1);
    next = (next + (used + step - 1) / step * step) % tiles.size();
  }
  return found->second;
}

TileMapPtr GraphImpl::linearMap(std::uint64_t elements, const std::vector<unsigned>& tiles,
                                const LinearDivision& division) {
  const std::size_t start = startOf(tiles, linearTilesUsed(elements, tiles.size(), division));
  TileMapPtr made;
  const bool is_range = tiles.back() - tiles.front() + 1 == tiles.size();
  TileMapPtr& map =
      is_range ? linear_maps_[{{tiles.front(), tiles.size()}, elements, division, start}] : made;
  if (!map) map = linearTileMap(elements, tiles, division, start);
  return map;
}

TileMapPtr GraphImpl::linearMap(ElementType type, std::uint64_t elements,
                                const std::vector<unsigned>& tiles) {
  const std::size_t bytes = sizeOf(type);
  return linearMap(elements, tiles, {128 / bytes, std::max<std::size_t>(8 / bytes, 1)});
}

Variable* GraphImpl::variableOfAll(const View& view) {
  if (!view.isContiguous()) return nullptr;
  Variable& variable = variables[view.variable];
  return variable.elements == view.numElements() ? &variable : nullptr;
}

ViewPtr GraphImpl::addLinear(ElementType type, std::vector<std::size_t> shape,
                             const DebugContext& debug) {
  return addLinear(type, std::move(shape), all_tiles, debug);
}

ViewPtr GraphImpl::addLinear(ElementType type, std::vector<std::size_t> shape,
                             const std::vector<unsigned>& tiles, const DebugContext& debug) {
  View view = wholeVariable(0, type, std::move(shape));
  const std::uint64_t elements = view.numElements();
  view.variable = addVariable(type, elements, linearMap(type, elements, tiles), debug);
  return share(std::move(view));
}

ViewPtr GraphImpl::addTemporary(const View& view, std::vector<std::size_t> shape,
                                const DebugContext& debug) {
  const auto ipu = ipuOf(view);
  ViewPtr made = isRemote(view) ? addRemote(view.type, std::move(shape), debug)
                                : addLinear(view.type, std::move(shape),
                                            ipu ? ipu_tiles_[*ipu] : all_tiles, debug);
  variables[made->variable].parts = firstWithParts(view).parts;
  return made;
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

std::optional<unsigned> GraphImpl::ipuOf(const View& view) const {
  if (view.isStrided()) {
    const auto ipus = ipusOf(*variables[view.variable].map, system.machine.tiles_per_ipu);
    const auto ipu = static_cast<unsigned>(std::countr_zero(ipus));
    const bool is_one = std::has_single_bit(ipus) && (ipu < 63 || system.num_ipus <= 64);
    return is_one ? std::optional(ipu) : std::nullopt;
  }
  std::optional<unsigned> found;
  for (const View& piece : view.pieces->views) {
    const auto ipu = ipuOf(piece);
    if (!ipu || (found && *found != *ipu)) return std::nullopt;
    found = ipu;
  }
  return found;
}

}  // namespace ipujax::engine
