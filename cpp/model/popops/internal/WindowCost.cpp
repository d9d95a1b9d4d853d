#include "popops/internal/WindowCost.hpp"

#include <algorithm>

#include "engine/graph/Planning.hpp"

namespace popops::internal {
namespace {

using ipujax::engine::ceilDiv;
using ipujax::engine::Cost;

constexpr std::uint64_t kIndexBytes = 4;  // the IPU's index type is UNSIGNED_INT
constexpr std::uint64_t kCodeBytes =
    600;  // estimate: a MultiSlice codelet is about 150 instructions

struct Split {
  std::uint64_t columns, rows, lookups;
};

struct Planned {
  Split split{1, 1, 1};
  double worker_cycles = 0;
  double index_bytes = 0;
  double table_bytes = 0;
  double total = 0;
};

Planned evaluate(const poplar::Target& target, const SliceProblem& p, Split split, bool moved,
                 std::uint64_t element_bytes, std::uint64_t vector) {
  Planned plan;
  plan.split = split;
  const std::uint64_t elements = ceilDiv(p.elements, split.columns);
  const std::uint64_t lookups = ceilDiv(p.lookups, split.lookups);
  const std::uint64_t workers = target.getNumWorkerContexts();
  const std::uint64_t each = ceilDiv(lookups, workers);
  const std::uint64_t in_range = std::min(each, ceilDiv(lookups, split.rows * workers));
  plan.worker_cycles = sliceVertexCycles(p.work, elements, each, in_range, vector, element_bytes,
                                         p.extra_cycles_per_vector);
  plan.index_bytes = static_cast<double>(lookups * p.coordinates * kIndexBytes);
  if (moved || split.lookups > 1) {
    plan.table_bytes = static_cast<double>(ceilDiv(p.rows, split.rows) * elements * element_bytes);
  }
  plan.total = static_cast<double>(workers) * plan.worker_cycles +
               (plan.index_bytes + plan.table_bytes) / target.getExchangeBytesPerCycle();
  return plan;
}

Planned choose(const poplar::Graph& graph, const poplar::Tensor& table, const SliceProblem& p) {
  const auto& target = graph.getTarget();
  const std::uint64_t tiles = target.getTilesPerIPU();
  const std::uint64_t bytes = target.getTypeSize(table.elementType());
  const std::uint64_t vector = std::max<std::uint64_t>(1, 8 / bytes);
  const auto placed = ipujax::engine::placementOf(graph, table);
  const std::uint64_t per_tile = std::max<std::uint64_t>(1, placed.max_elements_per_tile);
  // The table's own mapping: whole rows on a tile, or a row over several tiles.
  const Split found = per_tile >= p.elements
                          ? Split{1, std::max<std::uint64_t>(1, placed.tiles_used), 1}
                          : Split{ceilDiv(p.elements, per_tile), p.rows, 1};
  Planned best = evaluate(target, p, found, false, bytes, vector);
  for (std::uint64_t c = 1; c <= ceilDiv(p.elements, vector); c *= 2) {
    for (std::uint64_t r = 1; c * r <= tiles && r <= p.rows; r *= 2) {
      for (std::uint64_t l = 1; c * r * l <= tiles && l <= p.lookups; l *= 2) {
        const Planned plan = evaluate(target, p, {c, r, l}, true, bytes, vector);
        if (plan.total < best.total) best = plan;
      }
    }
  }
  return best;
}

}  // namespace

double sliceVertexCycles(SliceWork work, std::uint64_t elements, std::uint64_t lookups,
                         std::uint64_t in_range, std::uint64_t vector, std::uint64_t element_bytes,
                         double extra_cycles_per_vector) {
  const auto in = static_cast<double>(in_range);
  const auto out = static_cast<double>(lookups - in_range);
  const auto vectors = static_cast<double>(ceilDiv(elements, vector));
  switch (work) {
    case SliceWork::kRead:
      return 30 + in * (19 + 2 * vectors) + out * 8;
    case SliceWork::kWrite:
      return 29 + in * (19 + 2 * vectors) + out * 8;
    case SliceWork::kAccumulate:
      break;
  }
  const auto atoms =
      static_cast<double>(ceilDiv(elements * std::min<std::uint64_t>(element_bytes, 4), 4));
  return 34 + in * (12 + (atoms - 1) * 3 + vectors * extra_cycles_per_vector) + out * 5;
}

Cost sliceCost(const poplar::Graph& graph, const poplar::Tensor& table,
               const poplar::Tensor& slices, const SliceProblem& p) {
  Cost cost;
  if (p.rows == 0 || p.elements == 0 || p.lookups == 0) return cost;
  const auto& target = graph.getTarget();
  const Planned plan = choose(graph, table, p);
  const std::uint64_t tiles = std::min<std::uint64_t>(
      target.getNumTiles(), plan.split.columns * plan.split.rows * plan.split.lookups);
  const double in_bytes = plan.index_bytes + plan.table_bytes;
  addExchange(cost, target, {in_bytes * static_cast<double>(tiles), in_bytes});
  addComputeSet(cost, target, target.getNumWorkerContexts() * plan.worker_cycles, tiles);
  const auto placed = ipujax::engine::placementOf(graph, slices);
  const std::uint64_t bytes = target.getTypeSize(slices.elementType());
  const auto worst = static_cast<double>(placed.max_elements_per_tile * bytes);
  addExchange(cost, target, {static_cast<double>(placed.elements * bytes), worst});
  const std::uint64_t lookups = ceilDiv(p.lookups, plan.split.lookups * plan.split.rows);
  cost.temporary_bytes = static_cast<std::uint64_t>(in_bytes) +
                         lookups * ceilDiv(p.elements, plan.split.columns) * bytes;
  cost.received_bytes = static_cast<std::uint64_t>(in_bytes);
  cost.vertex_state_bytes = 32;
  cost.code_bytes = kCodeBytes;
  if (p.work == SliceWork::kAccumulate) cost.flops = static_cast<double>(p.lookups * p.elements);
  return cost;
}

double dynamicSliceCycles(std::uint64_t elements, std::uint64_t regions,
                          std::uint64_t element_bytes, std::uint64_t workers) {
  const std::uint64_t vector = std::max<std::uint64_t>(1, 8 / element_bytes);
  const auto copies = static_cast<double>(ceilDiv(elements, workers * vector));
  const double begin = element_bytes == 1 ? 76 : 39;
  const double region = (element_bytes == 1 ? 72 : 24) + 2 * copies;
  return 25 + static_cast<double>(workers) * (begin + region * static_cast<double>(regions));
}

Cost dynamicSliceCost(const poplar::Graph& graph, const poplar::Tensor& slice, std::uint64_t slots,
                      std::uint64_t coordinates) {
  Cost cost;
  const auto& target = graph.getTarget();
  const auto placed = ipujax::engine::placementOf(graph, slice);
  if (placed.elements == 0) return cost;
  const std::uint64_t bytes = target.getTypeSize(slice.elementType());
  const std::uint64_t region = placed.max_elements_per_tile;
  const auto offset_bytes = static_cast<double>(coordinates * kIndexBytes);
  addExchange(cost, target, {offset_bytes * static_cast<double>(placed.tiles_used), offset_bytes});
  // The slice is one of `slots` regions.
  const double cycles = dynamicSliceCycles(region, 1, bytes, target.getNumWorkerContexts());
  addComputeSet(cost, target, cycles, placed.tiles_used);
  cost.vertex_state_bytes = 28;
  cost.code_bytes = kCodeBytes;
  cost.temporary_bytes = coordinates * kIndexBytes + (slots > 1 ? 0 : region * bytes);
  return cost;
}

}  // namespace popops::internal
