#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "engine/graph/GraphImpl.hpp"
#include "poplar/Graph.hpp"
#include "poplar/MetadataCreation.hpp"
#include "poplar/internal/Held.hpp"

namespace poplar {

using ipujax::engine::concatViews;
using ipujax::engine::elementsOf;
using ipujax::engine::forEachRun;
using ipujax::engine::GraphImpl;
using ipujax::engine::Parts;
using ipujax::engine::reshapeView;
using ipujax::engine::sliceView;
using ipujax::engine::TileMap;
using ipujax::engine::tileMapOf;
using ipujax::engine::TileMapPtr;
using ipujax::engine::unmapped;
using ipujax::engine::View;
using ipujax::engine::ViewPtr;
using ipujax::engine::wholeVariable;

namespace {

/// Default metadata: on tile 0, with QuarterMetadata's default format and scale.
Tensor addMetadata(Graph& graph, const DebugContext& debugContext) {
  return createVariableMetadataTensor(graph, QuarterMetadata().getFormat(),
                                      QuarterMetadata().getScale(), {debugContext, "metadata"});
}

/// Reinterprets bytes as `type`; quarters take the metadata of `t` if it has some.
Tensor likeType(Graph& graph, const Tensor& bytes, const Type& type, const Tensor& t,
                const DebugContext& debugContext) {
  if (type == QUARTER_METADATA) return bytes.asMetadata();
  if (!type.requiresMetadata()) return bytes;
  return bytes.asQuarters(t.hasMetadata() ? t.getMetadata() : addMetadata(graph, debugContext));
}

}  // namespace

Tensor Graph::addVariable(const Type& type, ArrayRef<std::size_t> shape,
                          const DebugContext& debugContext) {
  const std::size_t n = elementsOf(shape);
  const auto id = impl().addVariable(type.storage(), n, unmapped(n), debugContext);
  const Tensor t(impl_.get(), std::make_shared<const View>(
                                  wholeVariable(id, type.storage(), shape.cloneAsVector())));
  if (type.requiresMetadata()) return t.asQuarters(addMetadata(*this, debugContext));
  return type == QUARTER_METADATA ? t.asMetadata() : t;
}

Tensor Graph::addVariable(const Type& type, ArrayRef<std::size_t> shape,
                          VariableMappingMethod mapping, const DebugContext& debugContext) {
  Tensor t = addVariable(type, shape, debugContext);
  if (mapping == VariableMappingMethod::LINEAR) {
    auto& variable = internal::held(impl_, "Graph").variables[t.view()->variable];
    variable.map = internal::held(impl_, "Graph")
                       .linearMap(type.storage(), variable.elements, physicalTiles());
  }
  return t;
}

namespace {

/// The dimensions of a strided view that do not repeat elements, smallest stride first.
std::vector<std::size_t> byStride(const View& view) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < view.shape.size(); ++i)
    if (view.shape[i] > 1 && view.strides[i] != 0) found.push_back(i);
  std::ranges::stable_sort(found, {}, [&](std::size_t i) { return std::abs(view.strides[i]); });
  return found;
}

/// Appends the tiles of a view's elements in memory order, over `dimensions` only. `begin` is the
/// position of the first element in the variable, `made` the number of elements appended before.
void addRegions(const View& view, std::span<const std::size_t> dimensions, std::int64_t begin,
                const TileMap& map, std::vector<TileMap::Region>& regions, std::uint64_t& made) {
  std::int64_t run = 1;
  std::size_t inner = 0;
  for (; inner < dimensions.size(); ++inner) {
    if (std::abs(view.strides[dimensions[inner]]) != run) break;
    run *= static_cast<std::int64_t>(view.shape[dimensions[inner]]);
  }
  if (inner < dimensions.size()) {
    const std::size_t outermost = dimensions.back();
    for (std::size_t i = 0; i < view.shape[outermost]; ++i) {
      addRegions(view, dimensions.first(dimensions.size() - 1), begin, map, regions, made);
      begin += std::abs(view.strides[outermost]);
    }
    return;
  }
  const auto first = static_cast<std::uint64_t>(begin);
  map.forEachPart(first, first + static_cast<std::uint64_t>(run),
                  [&](std::uint32_t tile, std::uint64_t from, auto) {
                    if (regions.empty() || regions.back().tile != tile)
                      regions.push_back({made + from - first, tile});
                  });
  made += static_cast<std::uint64_t>(run);
}

/// A view of a new variable that holds the elements of `view` once, in memory order. Null if `view`
/// is in several variables, overlaps itself, is empty or is not fully mapped.
ViewPtr cloneInOrder(GraphImpl& impl, Type type, const View& view, const DebugContext& debug) {
  if (!view.isStrided() || view.numElements() == 0) return nullptr;
  const std::vector<std::size_t> dimensions = byStride(view);
  View made = view;
  made.type = type.storage();
  made.offset = 0;
  std::int64_t low = view.offset;
  std::int64_t reached = 1;  // extent of the inner dimensions in the source
  std::int64_t count = 1;
  for (const std::size_t i : dimensions) {
    const std::int64_t stride = std::abs(view.strides[i]);
    if (stride < reached) return nullptr;  // elements overlap
    const auto last = static_cast<std::int64_t>(view.shape[i]) - 1;
    reached += stride * last;
    made.strides[i] = view.strides[i] < 0 ? -count : count;
    if (view.strides[i] < 0) {
      low -= stride * last;
      made.offset += count * last;
    }
    count *= last + 1;
  }
  const auto elements = static_cast<std::uint64_t>(count);
  TileMapPtr map = impl.variables[view.variable].map;
  if (elements != map->elements) {
    std::vector<TileMap::Region> regions;
    std::uint64_t num_made = 0;
    addRegions(view, dimensions, low, *map, regions, num_made);
    map = tileMapOf(elements, std::move(regions));
  }
  if (!map->complete) return nullptr;
  made.variable = impl.addVariable(type.storage(), elements, map, debug);
  return ipujax::engine::share(std::move(made));
}

/// Consecutive elements of a variable, and their position in the clone.
struct Piece {
  std::uint32_t variable;
  std::int64_t begin;
  std::int64_t end;
  std::uint64_t made = 0;
};

/// Merges `runs` into the memory that they cover, in memory order; adds its size to `made`.
std::vector<Piece> memoryOf(std::vector<Piece> runs, std::uint64_t& made) {
  std::ranges::sort(runs, {}, [](const Piece& p) { return std::pair(p.variable, p.begin); });
  std::vector<Piece> merged;
  for (const Piece& run : runs) {
    if (!merged.empty() && merged.back().variable == run.variable && run.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, run.end);
    else
      merged.push_back(run);
  }
  for (Piece& piece : merged) {
    piece.made = made;
    made += static_cast<std::uint64_t>(piece.end - piece.begin);
  }
  return merged;
}

/// Like cloneInOrder, for a view of several variables or with overlapping elements; null if not all
/// elements are mapped.
ViewPtr cloneInPieces(GraphImpl& impl, Type type, const View& view, const DebugContext& debug) {
  std::vector<Piece> runs;
  forEachRun(view, [&](std::uint32_t variable, std::int64_t begin, std::size_t length) {
    runs.push_back({variable, begin, begin + static_cast<std::int64_t>(length)});
  });
  std::uint64_t elements = 0;
  const std::vector<Piece> memory = memoryOf(runs, elements);
  std::vector<TileMap::Region> regions;
  for (const Piece& piece : memory) {
    const auto first = static_cast<std::uint64_t>(piece.begin);
    impl.variables[piece.variable].map->forEachPart(
        first, static_cast<std::uint64_t>(piece.end),
        [&](std::uint32_t tile, std::uint64_t from, auto) {
          if (regions.empty() || regions.back().tile != tile)
            regions.push_back({piece.made + from - first, tile});
        });
  }
  if (elements == 0) return nullptr;
  const TileMapPtr map = tileMapOf(elements, std::move(regions));
  if (!map->complete) return nullptr;
  const auto variable = impl.addVariable(type.storage(), elements, map, debug);
  const View whole = wholeVariable(variable, type.storage(), {elements});
  std::vector<View> parts;
  for (const Piece& run : runs) {
    const auto at =
        std::ranges::upper_bound(memory, std::pair(run.variable, run.begin), {},
                                 [](const Piece& p) { return std::pair(p.variable, p.begin); }) -
        1;
    const auto begin = at->made + static_cast<std::uint64_t>(run.begin - at->begin);
    parts.push_back(
        sliceView(whole, 0, begin, begin + static_cast<std::uint64_t>(run.end - run.begin)));
  }
  return ipujax::engine::share(reshapeView(concatViews(parts, 0), view.shape));
}

/// Tile map of a view of several variables, in the order of the view's elements.
TileMapPtr mapOfElements(const GraphImpl& impl, const View& view) {
  std::vector<TileMap::Region> regions;
  std::uint64_t elements = 0;
  forEachRun(view, [&](std::uint32_t variable, std::int64_t begin, std::size_t length) {
    const auto first = static_cast<std::uint64_t>(begin);
    impl.variables[variable].map->forEachPart(
        first, first + length, [&](std::uint32_t tile, std::uint64_t from, auto) {
          if (regions.empty() || regions.back().tile != tile)
            regions.push_back({elements + from - first, tile});
        });
    elements += length;
  });
  return tileMapOf(elements, std::move(regions));
}

/// Replication of the elements of a view, see Graph::createReplicatedGraph.
Parts partsOf(const GraphImpl& impl, const View& view) {
  Parts found;
  if (impl.partsOf(view) == 1) return found;
  forEachRun(view, [&](std::uint32_t variable, std::int64_t, std::size_t) {
    const Parts& parts = impl.variables[variable].parts;
    if (parts.count > found.count) found = parts;
  });
  return found;
}

}  // namespace

Tensor Graph::clone(const Type& type, const Tensor& t, const DebugContext& debugContext,
                    TensorCloneMethod method) {
  if (const Parts parts = partsOf(impl(), *t.view()); parts_ == 1 && parts.count > 1) {
    // A clone is replicated as its original is, even if another graph makes it.
    std::vector<unsigned> tiles(parts.tiles);
    std::iota(tiles.begin(), tiles.end(), parts.first_tile);
    Graph replicated(impl_, target_, std::move(tiles));
    replicated.parts_ = parts.count;
    replicated.first_tile_ = parts.first_tile;
    replicated.part_tiles_ = parts.tiles;
    return replicated.clone(type, t, debugContext, method);
  }
  if (method == TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES) {
    auto view = cloneInOrder(impl(), type, *t.view(), debugContext);
    if (!view && t.containsAliases()) view = cloneInPieces(impl(), type, *t.view(), debugContext);
    if (view) return likeType(*this, Tensor(impl_.get(), std::move(view)), type, t, debugContext);
  }
  const Type bytes(type.storage());
  Tensor result = addVariable(bytes, t.shape(), VariableMappingMethod::LINEAR, debugContext);
  const auto* original = internal::held(impl_, "Graph").variableOfAll(*t.view());
  const TileMapPtr map = original ? original->map
                         : !t.view()->isStrided()
                             ? mapOfElements(internal::held(impl_, "Graph"), *t.view())
                             : nullptr;
  if (map && map->complete)
    internal::held(impl_, "Graph").variables[result.view()->variable].map = map;
  return likeType(*this, result, type, t, debugContext);
}

Tensor Graph::clone(const Tensor& t, const DebugContext& debugContext, TensorCloneMethod method) {
  return clone(t.elementType(), t, debugContext, method);
}

}  // namespace poplar
