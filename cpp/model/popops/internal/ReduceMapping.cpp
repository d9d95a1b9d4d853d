#include "popops/internal/ReduceMapping.hpp"

#include <algorithm>
#include <cstdint>

#include "engine/graph/Planning.hpp"

namespace popops::internal {

namespace {

using Mapping = poplar::Graph::TileToTensorMapping;

/// `in` as a matrix with one row for each result.
poplar::Tensor asRows(const poplar::Tensor& in, const std::vector<std::size_t>& dims,
                      std::size_t rows) {
  std::vector<unsigned> order;
  for (const bool reduced : {false, true}) {
    for (unsigned d = 0; d < in.rank(); ++d)
      if ((std::ranges::find(dims, d) != dims.end()) == reduced) order.push_back(d);
  }
  return in.dimShuffle(order).reshape({rows, in.numElements() / rows});
}

bool isOnOneTile(const poplar::Graph& graph, const poplar::Tensor& t) {
  const Mapping mapping = graph.getTileMapping(t, false);
  return std::ranges::count_if(mapping, [](const auto& tile) { return !tile.empty(); }) == 1;
}

}  // namespace

std::optional<Mapping> tileLocalMapping(const poplar::Graph& graph, const poplar::Tensor& in,
                                        const std::vector<std::size_t>& dims,
                                        const poplar::Type& outType) {
  if (in.numElements() == 0 || !in.isParallelWriteable()) return {};
  std::size_t factor = 1;
  for (const std::size_t d : dims) factor *= in.dim(static_cast<unsigned>(d));
  const std::size_t results = in.numElements() / factor;
  if (ipujax::engine::placementOf(graph, in).tiles_used > results) return {};
  const poplar::Tensor rows = asRows(in, dims, results);
  for (const std::size_t row : {std::size_t{0}, results - 1})  // rejects most early
    if (!isOnOneTile(graph, rows[row])) return {};
  bool complete = false;
  Mapping mapping = graph.getTileMapping(rows.flatten(), &complete);
  if (!complete) return {};
  const std::size_t in_word =
      factor == 1 ? 1 : std::max<std::size_t>(1, 4 / graph.getTarget().getTypeSize(outType));
  for (auto& tile : mapping) {
    std::size_t on_tile = 0;
    for (auto& interval : tile) {
      if (interval.begin() % factor != 0 || interval.end() % factor != 0) return {};
      interval = {interval.begin() / factor, interval.end() / factor};
      on_tile += interval.size();
    }
    if (on_tile % in_word != 0) return {};
  }
  return mapping;
}

}  // namespace popops::internal
