#include "engine/build/Mapped.hpp"

#include <algorithm>

#include "engine/Errors.hpp"

namespace ipujax::engine::build {
namespace {

/// Whether all variables of a view are completely on tiles; does not visit the view's runs.
bool isSurelyMapped(const GraphImpl& graph, const View& view) {
  if (view.isStrided()) {
    const Variable& variable = graph.variables[view.variable];
    return variable.is_remote || variable.map->complete;
  }
  return std::ranges::all_of(view.pieces->views,
                             [&](const View& piece) { return isSurelyMapped(graph, piece); });
}

}  // namespace

void needTiles(const GraphImpl& graph, const View& view, const DebugContext& copy) {
  if (view.numElements() == 0 || isSurelyMapped(graph, view)) return;
  forEachRun(view, [&](std::uint32_t id, std::int64_t begin, std::size_t length) {
    const Variable& variable = graph.variables[id];
    if (variable.is_remote || variable.map->complete) return;
    const auto from = static_cast<std::uint64_t>(begin);
    variable.map->forEachPart(
        from, from + length, [&](std::uint32_t tile, std::uint64_t element, std::uint64_t) {
          if (tile != TileMap::kUnmapped) return;
          throw invalid_tile_mapping("[Copy] needs every element on a tile; got element " +
                                     std::to_string(element) + " of '" +
                                     variable.debug.getPathName() + "', which is on none, in '" +
                                     copy.getPathName() + "'. Call setTileMapping.");
        });
  });
}

}  // namespace ipujax::engine::build
