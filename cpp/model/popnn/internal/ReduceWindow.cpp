#include "popnn/internal/ReduceWindow.hpp"

#include <algorithm>
#include <cmath>

#include "engine/graph/Emit.hpp"
#include "engine/graph/Planning.hpp"

namespace popnn::internal {

namespace engine = ipujax::engine;
using engine::reduction::Reducer;
using poplar::Tensor;

namespace {

/// Windows of one dimension that reach the start (or the end) for every output become a scan.
bool isScan(const Tensor& in, const Window& window) {
  int windowed = 0;
  bool scan = false;
  for (std::size_t d = 0; d < window.rank(); ++d) {
    const auto n = static_cast<std::int64_t>(in.shape()[d]);
    if (window.isPlain(d, n)) continue;
    ++windowed;
    scan = window.sizes[d] >= n && n > 1 && window.outputSize(d, n) > 1;
  }
  return windowed == 1 && scan;
}

/// Each tile scans its own part; one tile scans the totals, which are then added to the parts.
engine::Cost scanCost(const poplar::Graph& graph, const Tensor& in, double cycles) {
  const poplar::Target& target = graph.getTarget();
  const engine::Placement at = engine::placementOf(graph, in);
  const double worker = std::ceil(static_cast<double>(at.max_elements_per_tile) / 6);
  engine::Cost cost;
  engine::addComputeSet(cost, target, 11 + 6 * (17 + worker * cycles), at.tiles_used);
  if (at.tiles_used > 1) {
    const auto tiles = static_cast<double>(at.tiles_used);
    const auto size = static_cast<double>(target.getTypeSize(in.elementType()));
    engine::addExchange(cost, target, {tiles * size, tiles * size});
    engine::addComputeSet(cost, target, 11 + 6 * (17 + std::ceil(tiles / 6) * cycles), 1);
    engine::addExchange(cost, target, {tiles * size, size});
    engine::addComputeSet(cost, target, 11 + 6 * (17 + worker * cycles), at.tiles_used);
    cost.temporary_bytes = static_cast<std::uint64_t>(tiles * size);
    cost.received_bytes = cost.temporary_bytes;
  }
  cost.vertex_state_bytes = 6 * 24;
  cost.code_bytes = 640;
  cost.flops = static_cast<double>(in.numElements());
  return cost;
}

}  // namespace

std::vector<std::size_t> windowOutputShape(const Tensor& in, const Window& window) {
  std::vector<std::size_t> shape;
  for (std::size_t d = 0; d < window.rank(); ++d) {
    const auto n = static_cast<std::int64_t>(in.shape()[d]);
    shape.push_back(static_cast<std::size_t>(window.outputSize(d, n)));
  }
  return shape;
}

engine::Cost windowCost(const poplar::Graph& graph, const Tensor& in, const Tensor& out,
                        const Window& window, double cycles_per_tap) {
  engine::Cost cost;
  cost.code_bytes = 900;  // our estimate of the pooling vertex's code
  if (out.numElements() == 0) return cost;
  const poplar::Target& target = graph.getTarget();
  const double outputs = static_cast<double>(out.numElements());
  const double tiles = std::min<double>(outputs, target.getNumTiles());
  const double per_tile = std::ceil(outputs / tiles);
  const double taps = static_cast<double>(window.volume());
  const double vector = std::max(1u, target.getVectorWidth(in.elementType()));
  // popnnCycleEstimators.cpp: 7 + 6 w + 6, w = 30 + 15 rows + 23 items + chunks (3 + 5 + c taps).
  const double chunks = std::ceil(std::ceil(per_tile / 6) / vector);
  const double rows = std::min(chunks, 4.0);
  const double worker = 30 + 15 * rows + 23 * rows + chunks * (8 + cycles_per_tap * taps);
  // A tile needs the inputs under its windows; neighbouring windows share most of them.
  double inputs = per_tile;
  for (std::size_t d = 0; d < window.rank(); ++d) {
    if (window.sizes[d] == 1) continue;
    const double along = std::max(1.0, std::pow(per_tile, 1.0 / window.rank()));
    const double step = static_cast<double>(window.strides[d]) / window.base_dilations[d];
    inputs *= (along * step + static_cast<double>(window.sizes[d])) / along;
  }
  inputs = std::min(inputs, static_cast<double>(in.numElements()));
  if (tiles > 1) {
    const double bytes = inputs * static_cast<double>(target.getTypeSize(in.elementType()));
    engine::addExchange(cost, target, {bytes * tiles, bytes});
    cost.temporary_bytes = static_cast<std::uint64_t>(bytes);
    cost.received_bytes = cost.temporary_bytes;
  }
  engine::addComputeSet(cost, target, 7 + 6 * worker + 6, static_cast<std::uint64_t>(tiles));
  cost.vertex_state_bytes = 6 * 40;
  cost.code_bytes = 900;
  cost.flops = outputs * taps;
  return cost;
}

engine::Cost windowOrScanCost(const poplar::Graph& graph, const Tensor& in, const Tensor& out,
                              const Window& window, double cycles_per_tap,
                              double cycles_per_scanned) {
  return isScan(in, window) ? scanCost(graph, in, cycles_per_scanned)
                            : windowCost(graph, in, out, window, cycles_per_tap);
}

void reduceWindowNamed(poplar::Graph& graph, const Tensor& in, const Tensor& out,
                       const Tensor& init, Reducer reducer, bool average, const Window& window,
                       poplar::program::Sequence& prog, const poplar::DebugContext& debugContext) {
  window.check("popnn::reduceWindow", in.rank());
  engine::StepSpec spec;
  spec.kernel = "popx.reduce_window";
  spec.operands = {{in, engine::Access::kRead, false}, {out, engine::Access::kWrite, true}};
  if (init.valid()) spec.operands.push_back({init, engine::Access::kRead, true});
  spec.attributes.set("reducer", static_cast<std::int64_t>(reducer))
      .set("average", std::int64_t{average})
      .set("window", window.toIntegers());
  // popnnCycleEstimators.cpp: three cycles per tap for sum and for max.
  spec.cost = windowOrScanCost(graph, in, out, window, 3, 4);
  engine::emit(graph, prog, std::move(spec), {debugContext, "reduceWindow"});
}

}  // namespace popnn::internal
