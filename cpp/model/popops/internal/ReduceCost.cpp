#include "popops/internal/ReduceCost.hpp"

#include <algorithm>
#include <cmath>

#include "engine/graph/Planning.hpp"
#include "engine/ops/SoftwareArithmetic.hpp"

namespace popops::internal {

namespace engine = ipujax::engine;
using engine::Cost;

namespace {

constexpr double kVertexEntry = 11;     // poplibs MultiVertex supervisor entry
constexpr double kContiguousBase = 17;  // poplibs CycleEstimationFunctions.cpp, contiguous regions
constexpr std::uint64_t kCodeBytes = 640;   // our estimate of one reduction vertex's code
constexpr std::uint64_t kVertexBytes = 24;  // our estimate: two edges, a count, a strides entry

/// Tile cycles to reduce `elements` on one tile to `outputs`; poplibs CycleEstimationFunctions.cpp.
double vertexCycles(const VertexRate& rate, double elements, double outputs) {
  if (elements <= 0) return kVertexEntry;
  const double worker_elements = std::ceil(elements / rate.workers);
  const double worker_outputs = std::ceil(std::max(outputs, 1.0) / rate.workers);
  const double per_output = worker_elements / worker_outputs;
  const double loop = std::ceil(per_output / rate.vector) * rate.cycles_per_vector;
  return kVertexEntry +
         rate.workers * (kContiguousBase + worker_outputs * (loop + rate.cycles_per_output));
}

std::uint64_t bytesOf(double elements, std::size_t size) {
  return static_cast<std::uint64_t>(std::ceil(elements)) * size;
}

}  // namespace

VertexRate reduceRate(const poplar::Target& target, const poplar::Type& type) {
  VertexRate rate(target);
  const bool floating = type == poplar::FLOAT || type == poplar::HALF;
  rate.vector = floating ? target.getVectorWidth(type) : 1;
  if (!floating) rate.cycles_per_vector = 4;
  if (engine::isSoftware(type.element()))
    rate.cycles_per_vector = engine::softwareAddCycles(type.element());
  return rate;
}

// Long: the compared plans share these numbers.
Cost reduceCost(const poplar::Graph& graph, const poplar::Tensor& in,
                const std::vector<std::size_t>& dims, const poplar::Tensor& out,
                std::size_t partial_bytes, const VertexRate& rate, bool is_local) {
  Cost none;
  none.code_bytes = kCodeBytes;
  if (out.numElements() == 0) return none;
  const poplar::Target& target = graph.getTarget();
  const engine::Placement at = engine::placementOf(graph, in);
  const double outputs = static_cast<double>(out.numElements());
  const double elements = static_cast<double>(in.numElements());
  const double size = static_cast<double>(target.getTypeSize(in.elementType()));
  const double tiles = std::max<double>(1, static_cast<double>(at.tiles_used));
  const double out_tiles = std::min<double>(outputs, target.getNumTiles());
  const double outputs_per_tile = std::ceil(outputs / out_tiles);
  const double factor = elements / outputs;
  const bool contiguous = in.rank() > 0 && std::count(dims.begin(), dims.end(), in.rank() - 1u) > 0;

  if (is_local) {
    const double most = static_cast<double>(at.max_elements_per_tile);
    Cost cost = none;
    addComputeSet(cost, target, vertexCycles(rate, most, most / factor), at.tiles_used);
    cost.vertex_state_bytes = target.getNumWorkerContexts() * kVertexBytes;
    cost.flops = elements;
    return cost;
  }
  Cost direct = none;
  const double gathered = outputs_per_tile * factor;
  if (tiles > 1) {
    const double away = 1 - 1 / tiles;
    addExchange(direct, target, {elements * size * away, gathered * size * away});
  }
  addComputeSet(direct, target, vertexCycles(rate, gathered, outputs_per_tile),
                static_cast<std::uint64_t>(out_tiles));
  direct.temporary_bytes = tiles > 1 ? bytesOf(gathered * size, 1) : 0;
  direct.received_bytes = direct.temporary_bytes;

  const double local = static_cast<double>(at.max_elements_per_tile);
  const double partials =
      std::min(outputs, contiguous ? std::ceil(local / std::max(factor, 1.0)) : local);
  Cost local_stage = none;
  addComputeSet(local_stage, target, vertexCycles(rate, local, partials), at.tiles_used);
  local_stage.temporary_bytes = bytesOf(partials, partial_bytes);
  const double sources = tiles > 1 ? std::max(1.0, std::min(tiles * partials / outputs, tiles)) : 1;
  // Reduces `from` partials of each output to `to`, on as many tiles as possible.
  const auto stage = [&](Cost& cost, double from, double to) {
    const double results = outputs * to;
    const double used = std::min<double>(results, target.getNumTiles());
    const double per_tile = std::ceil(results / used);
    const double received = per_tile * std::ceil(from / to);
    const double bytes = static_cast<double>(partial_bytes);
    addExchange(cost, target, {outputs * from * bytes, received * bytes});
    addComputeSet(cost, target, vertexCycles(rate, received, per_tile),
                  static_cast<std::uint64_t>(used));
    cost.temporary_bytes += bytesOf(received, partial_bytes);
    cost.received_bytes += bytesOf(received, partial_bytes);
  };
  Cost staged = local_stage;
  if (tiles > 1) stage(staged, sources, 1);
  // poplibs ReductionPlan.cpp: an intermediate stage with about the square root of the sources.
  if (sources >= 4) {
    Cost longer = local_stage;
    const double middle = std::ceil(std::sqrt(sources));
    stage(longer, sources, middle);
    stage(longer, middle, 1);
    if (longer.cycles() < staged.cycles()) staged = longer;
  }
  Cost best = direct.cycles() <= staged.cycles() ? direct : staged;
  best.vertex_state_bytes = target.getNumWorkerContexts() * kVertexBytes;
  best.flops = elements;
  return best;
}

}  // namespace popops::internal
