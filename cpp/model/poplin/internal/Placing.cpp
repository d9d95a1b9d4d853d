#include "poplin/internal/Placing.hpp"

#include <algorithm>
#include <string>

#include "engine/blas/Arithmetic.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/Planning.hpp"
#include "poplar/exceptions.hpp"
#include "poplin/internal/PlanningCacheImpl.hpp"
#include "popops/internal/ElementWiseCost.hpp"
#include "popops/internal/QuarterCast.hpp"

namespace poplin {
namespace {

using ipujax::engine::ceilDiv;

/// Elements move in units of eight bytes, one load.
std::uint64_t grainOf(const poplar::Tensor& t) {
  return std::max<std::uint64_t>(8 / sizeOf(t.elementType().storage()), 1);
}

std::uint64_t tilesFor(std::uint64_t elements, std::uint64_t grain, std::uint64_t per_tile,
                       std::uint64_t tiles) {
  const std::uint64_t grains = ceilDiv(elements, grain);
  const std::uint64_t least = std::max<std::uint64_t>(ceilDiv(per_tile, grain), 1);
  return std::clamp<std::uint64_t>(grains / least, 1, tiles);
}

/// The number of elements of one slice of weights on a tile.
std::uint64_t ofSliceOnTile(const poplar::Graph& graph, const poplar::Tensor& weights,
                            std::uint64_t per_tile, std::uint64_t slices) {
  const std::uint64_t grain = grainOf(weights);
  const std::uint64_t elements = weights.numElements() / slices;
  const std::uint64_t tiles =
      tilesFor(elements, grain, ceilDiv(per_tile, slices), graph.physicalTiles().size());
  return ceilDiv(ceilDiv(elements, grain), tiles) * grain;
}

/// Whether weights, in any order of their dimensions, are mapped as placeInSlices maps them.
bool isPlacedInSlices(const poplar::Graph& graph, const poplar::Tensor& weights,
                      const plan::Plan& plan) {
  const auto& view = *weights.view();
  const std::uint64_t slices = plan.out_serial;
  if (slices < 2 || weights.numElements() % slices != 0 || !view.isStrided()) return false;
  const auto& variable = graph.impl().variables[view.variable];
  const auto& map = *variable.map;
  const std::uint64_t on_tile =
      ofSliceOnTile(graph, weights, plan.weight_elements_per_tile, slices);
  const std::uint64_t tiles = ceilDiv(weights.numElements() / slices, on_tile);
  return variable.elements == weights.numElements() && map.complete && map.tiles_used == tiles &&
         map.max_per_tile == on_tile * slices && (tiles == 1 || map.regions.size() > tiles);
}

}  // namespace

void placeAsPlanned(poplar::Graph& graph, const poplar::Tensor& t, std::uint64_t per_tile) {
  if (t.numElements() == 0) return;
  auto& variable = graph.impl().variables[t.view()->variable];
  variable.map =
      graph.impl().linearMap(variable.elements, graph.physicalTiles(), {per_tile, grainOf(t)});
}

void placeInSlices(poplar::Graph& graph, const poplar::Tensor& weights, std::uint64_t per_tile,
                   std::uint64_t slices) {
  const std::size_t channels = weights.dim(1);
  if (slices < 2 || channels % slices != 0) return placeAsPlanned(graph, weights, per_tile);
  const std::uint64_t elements = weights.numElements() / slices;
  const std::uint64_t on_tile = ofSliceOnTile(graph, weights, per_tile, slices);
  poplar::Graph::TileToTensorMapping mapping(graph.physicalTiles().size());
  for (std::uint64_t begin = 0, tile = 0; begin < elements; begin += on_tile, ++tile)
    mapping[tile].emplace_back(begin, std::min(begin + on_tile, elements));
  const std::size_t each = channels / slices;
  for (std::size_t s = 0; s < slices; ++s)
    graph.setTileMapping(weights.slice(s * each, (s + 1) * each, 1), mapping);
}

bool isPlacedAsPlanned(const poplar::Graph& graph, const poplar::Tensor& t,
                       std::uint64_t per_tile) {
  const auto& view = *t.view();
  if (!view.isStrided()) return false;
  const auto& variable = graph.impl().variables[view.variable];
  const auto& map = *variable.map;
  const std::uint64_t tiles =
      tilesFor(variable.elements, grainOf(t), per_tile, graph.physicalTiles().size());
  return variable.elements == t.numElements() && map.complete && map.tiles_used == tiles &&
         map.regions.size() == tiles;
}

plan::Plan planForOperands(const poplar::Graph& graph, plan::Problem problem,
                           const poplar::Tensor& in, const poplar::Tensor& weights,
                           PlanningCache* cache) {
  // A plan that moves one operand may want the other elsewhere, so at most three plans are made.
  while (true) {
    const plan::Plan plan = planFor(problem, graph.getTarget(), cache);
    if (plan.swapped) return plan;  // moves both
    const bool in_moves =
        !problem.in_moved && !isPlacedAsPlanned(graph, in, plan.in_elements_per_tile);
    const bool weights_move = !problem.weights_moved &&
                              !isPlacedAsPlanned(graph, weights, plan.weight_elements_per_tile) &&
                              !isPlacedInSlices(graph, weights, plan);
    if (!in_moves && !weights_move) return plan;
    problem.in_moved |= in_moves;
    problem.weights_moved |= weights_move;
  }
}

bool isFloating(poplar::Type type) { return type == poplar::FLOAT || type == poplar::HALF; }

void checkTypes(const char* where, poplar::Type a, const char* sign, poplar::Type b,
                poplar::Type out) {
  constexpr auto kDouble = ipujax::engine::ElementType::kDouble;
  if (a.requiresMetadata()) a = poplar::HALF;
  if (b.requiresMetadata()) b = poplar::HALF;
  const auto integer = [](poplar::Type t) { return ipujax::engine::blas::isInteger(t.element()); };
  const bool same = a == b || (isFloating(a) && isFloating(b)) || (integer(a) && integer(b));
  const bool emulated = a.element() == kDouble || out.element() == kDouble;
  if (same && (emulated ? a == out : isFloating(a) == isFloating(out))) return;
  throw poplar::type_error(
      std::string("[poplin::") + where +
      "] needs FLOAT or HALF throughout, DOUBLE throughout, or integers; got " + a.toString() +
      " " + sign + " " + b.toString() + " -> " + out.toString() + ". Cast the operands.");
}

poplar::Tensor withoutQuarters(poplar::Graph& graph, const poplar::Tensor& t,
                               poplar::program::Sequence& prog,
                               const poplar::DebugContext& debugContext, bool is_free) {
  if (!t.hasMetadata()) return t;
  const poplar::Tensor halves = graph.clone(poplar::HALF, t, {debugContext, "cast"});
  popops::internal::castQuarters(graph, t, halves, prog, {debugContext, "cast"}, is_free);
  return halves;
}

bool multipliesQuarters(const poplar::Graph& graph) {
  return graph.getTarget().getTargetArchString() == "ipu21";
}

ipujax::engine::ElementType multipliedType(poplar::Type a, poplar::Type b, poplar::Type out) {
  if (a.requiresMetadata()) a = poplar::HALF;
  if (b.requiresMetadata()) b = poplar::HALF;
  auto widest = a.element();
  for (const auto type : {b.element(), out.element()})
    if (ipujax::engine::blas::isInteger(type) && sizeOf(type) > sizeOf(widest)) widest = type;
  return widest;
}

void addWidening(ipujax::engine::Cost& cost, const poplar::Graph& graph, const poplar::Tensor& t,
                 ipujax::engine::ElementType multiplied) {
  const auto type = t.elementType().element();
  const bool narrow = ipujax::engine::blas::isInteger(type) && sizeOf(type) < sizeOf(multiplied);
  if (!narrow || t.numElements() == 0) return;
  const auto place = ipujax::engine::placementOf(graph, t);
  const auto& target = graph.getTarget();
  const auto cycles = [&](std::uint64_t n) {
    return popops::elementwise::castCycles(type, multiplied, n, target.getNumWorkerContexts());
  };
  ipujax::engine::addComputeSet(cost, target, cycles(place.max_elements_per_tile), place.tiles_used,
                                cycles(ceilDiv(t.numElements(), place.tiles_used)));
  cost.flops += static_cast<double>(t.numElements());
  const std::uint64_t widened = place.max_elements_per_tile * sizeOf(multiplied);
  cost.temporary_bytes += widened;
  cost.rearranged_bytes += widened;
}

}  // namespace poplin
