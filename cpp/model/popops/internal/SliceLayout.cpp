#include "popops/internal/SliceLayout.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "engine/graph/Planning.hpp"
#include "poputil/TileMapping.hpp"
#include "poputil/exceptions.hpp"

namespace popops::internal {
namespace {

using Dims = std::vector<std::size_t>;
using poplar::Tensor;

using ipujax::engine::ceilDiv;

std::size_t productOf(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::size_t{1}, std::multiplies<>());
}

/// Builds the tile mapping of a variable's elements, run by run.
class Runs {
 public:
  explicit Runs(std::size_t tiles) : mapping_(tiles) {}
  void add(std::size_t tile, std::size_t elements) {
    if (elements == 0) return;
    auto& own = mapping_[tile];
    if (!own.empty() && own.back().end() == at_) {
      own.back() = {own.back().begin(), at_ + elements};
    } else {
      own.emplace_back(at_, at_ + elements);
    }
    at_ += elements;
  }
  const poplar::Graph::TileToTensorMapping& mapping() const { return mapping_; }

 private:
  poplar::Graph::TileToTensorMapping mapping_;
  std::size_t at_ = 0;
};

/// `stored` is [groups, sliced, elements of `others`] or, with `by_column`, with the last two
/// swapped. Returns [groups, sliced, others...].
Tensor inOrder(const Tensor& stored, bool by_column, const Dims& others) {
  const Tensor t = by_column ? stored.dimShuffle({0, 2, 1}) : stored;
  return t.reshapePartial(2, 3, others);
}

void checkFits(const poplar::Graph& graph, const SlicePartition& p) {
  const std::size_t tiles = graph.getTarget().getNumTiles();
  if (p.tiles() <= tiles) return;
  throw poputil::poplibs_error("[popops] needs a plan for at most " + std::to_string(tiles) +
                               " tiles; got one for " + std::to_string(p.tiles()) +
                               ". Plan with the graph that has the table.");
}

Dims without(Dims shape, std::size_t dim) {
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  return shape;
}

}  // namespace

Tensor createSpread(poplar::Graph& graph, const poplar::Type& type, const Dims& shape,
                    const Dims& dims, std::size_t min_grain,
                    const poplar::DebugContext& debugContext) {
  if (dims.empty() || productOf(shape) == 0) {
    const Tensor t = graph.addVariable(type, shape, debugContext);
    poputil::mapTensorLinearly(graph, t);
    return t;
  }
  // The other dimensions, then the sliced ones.
  Dims ordered;
  std::vector<unsigned> order, back(shape.size());
  for (unsigned d = 0; d < shape.size(); ++d)
    if (std::ranges::find(dims, d) == dims.end()) order.push_back(d);
  for (const auto d : dims) order.push_back(static_cast<unsigned>(d));
  for (unsigned i = 0; i < order.size(); ++i) {
    ordered.push_back(shape[order[i]]);
    back[order[i]] = i;
  }
  std::size_t along = 1;
  for (const auto d : dims) along *= shape[d];
  const std::size_t elements = productOf(shape);
  const std::size_t spread = elements / along;
  const auto& target = graph.getTarget();
  std::size_t each = std::max(ceilDiv(spread, target.getNumTiles()), min_grain);
  const std::size_t bytes = target.getTypeSize(type);
  const std::size_t atom = target.getAtomicStoreGranularity();
  if (dims.size() == 1 && min_grain > 1 && atom > bytes && min_grain * bytes >= atom)
    each = ceilDiv(each, atom / bytes) * (atom / bytes);  // whole words are written
  each = std::min(each, spread);
  Runs runs(target.getNumTiles());
  for (std::size_t tile = 0, at = 0; at < spread; ++tile, at += each)
    runs.add(tile, std::min(each, spread - at) * along);
  // A tile's elements are one run, and so are those of them that lie in one slice.
  const Tensor stored = graph.addVariable(type, {elements}, debugContext);
  graph.setTileMapping(stored, runs.mapping());
  const std::size_t tiles = spread / each;
  const std::size_t whole = tiles * each * along;
  Tensor t = stored.slice(0, whole).reshape({tiles, along, each}).dimShuffle({0, 2, 1}).flatten();
  if (whole < elements)
    t = concat(t, stored.slice(whole, elements)
                      .reshape({along, spread - tiles * each})
                      .transpose()
                      .flatten());
  return t.reshape(ordered).dimShuffle(back);
}

Tensor createPlannedTable(poplar::Graph& graph, const poplar::Type& type, std::size_t groups,
                          const Dims& shape, std::size_t dim, const SlicePartition& p,
                          const poplar::DebugContext& debugContext) {
  checkFits(graph, p);
  const auto& target = graph.getTarget();
  const Dims others = without(shape, dim);
  const std::size_t rows = shape[dim];
  const std::size_t columns = productOf(others);
  const bool by_column = p.columns > 1;
  const Tensor stored = graph.addVariable(
      type, by_column ? Dims{groups, columns, rows} : Dims{groups, rows, columns}, debugContext);
  // A part's elements, row by row, are spread over the tiles of its lookups, in pieces that tiles
  // on a shared exchange bus receive together.
  const std::size_t bus_elements = std::max<std::size_t>(
      1, target.getExchangeBytesPerCycle() * target.getTilesPerSharedExchangeBus() /
             target.getTypeSize(type));
  const std::size_t grain = std::lcm(p.grain, bus_elements);
  const std::size_t row_part = ceilDiv(rows, p.rows);
  const std::size_t column_part = ceilDiv(columns, p.columns);
  Runs runs(target.getNumTiles());
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t group = g / ceilDiv(groups, p.groups);
    // One column at a time, or all of them together.
    for (std::size_t at = 0; at < columns; at += by_column ? 1 : columns) {
      const std::size_t column = at / column_part;
      const std::size_t width = std::min(column_part, columns - column * column_part);
      const std::size_t first = at - column * column_part;
      for (std::size_t row = 0; row * row_part < rows; ++row) {
        const std::size_t height = std::min(row_part, rows - row * row_part);
        const std::size_t share = ceilDiv(ceilDiv(height * width, grain), p.lookups) * grain;
        // Element (i, first) of the part has index i * width + first.
        std::size_t done = 0;
        for (std::size_t lookup = 0; done < height; ++lookup) {
          const std::size_t end = (lookup + 1) * share;
          const std::size_t tile = p.tileOf(group, lookup, row, column);
          if (by_column) {
            const std::size_t reached =
                end <= first ? 0 : std::min(height, ceilDiv(end - first, width));
            runs.add(tile, reached - done);
            done = reached;
          } else {
            const std::size_t all = height * width;
            runs.add(tile, std::min(end, all) - lookup * share);
            done = end >= all ? height : 0;
          }
        }
      }
    }
  }
  graph.setTileMapping(stored, runs.mapping());
  Tensor t = inOrder(stored, by_column, others);
  return t.dimRoll(1, static_cast<unsigned>(dim) + 1);
}

Tensor createPlannedSlices(poplar::Graph& graph, const poplar::Type& type, std::size_t groups,
                           const Dims& shape, std::size_t dim, std::size_t lookups,
                           const SlicePartition& p, const poplar::DebugContext& debugContext) {
  checkFits(graph, p);
  const Dims others = without(shape, dim);
  const std::size_t columns = productOf(others);
  const bool by_column = p.columns > 1;
  const Tensor stored = graph.addVariable(
      type, by_column ? Dims{groups, columns, lookups} : Dims{groups, lookups, columns},
      debugContext);
  // Tiles with the other rows of a part's lookups share its second stage.
  const std::size_t lookup_part = std::max<std::size_t>(1, ceilDiv(lookups, p.lookups));
  const std::size_t second_part = ceilDiv(lookup_part, p.rows);
  const std::size_t column_part = std::max<std::size_t>(1, ceilDiv(columns, p.columns));
  Runs runs(graph.getTarget().getNumTiles());
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t group = g / ceilDiv(groups, p.groups);
    for (std::size_t at = 0; at < columns; at += by_column ? 1 : columns) {
      for (std::size_t i = 0; i < lookups;) {
        const std::size_t lookup = i / lookup_part;
        const std::size_t row = (i - lookup * lookup_part) / second_part;
        const std::size_t end = std::min(
            {lookups, (lookup + 1) * lookup_part, lookup * lookup_part + (row + 1) * second_part});
        runs.add(p.tileOf(group, lookup, row, at / column_part),
                 (end - i) * (by_column ? 1 : columns));
        i = end;
      }
    }
  }
  graph.setTileMapping(stored, runs.mapping());
  // [groups, lookups, others] to [groups, lookups, shape with 1 at dim].
  return inOrder(stored, by_column, others).expand({dim + 2});
}

}  // namespace popops::internal
