#include "popnn/internal/CTCCost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "engine/graph/Planning.hpp"
#include "popnn/internal/Fused.hpp"

namespace popnn::internal {
namespace {

using ipujax::engine::addComputeSet;
using ipujax::engine::addExchange;
using ipujax::engine::ceilDiv;
using ipujax::engine::Cost;
using std::uint64_t;

constexpr uint64_t kBytes = sizeof(float);
constexpr double kMemoryProportion = 0.6;

/// The share of the fullest tile of a partition.
struct Part {
  Part(const CtcSizes& sizes, const CtcPartition& by)
      : batch(ceilDiv(sizes.batch, by.batch)),
        time(ceilDiv(sizes.time, by.time)),
        labels(ceilDiv(sizes.labels, by.labels)),
        extra_blank(labels * by.labels == sizes.labels),
        states(2 * labels + (extra_blank ? 1 : 0)) {}

  /// Steps of alpha and beta each, and again of each with the gradient. With an odd number of parts
  /// of time, one waits for the other.
  uint64_t steps(const CtcPartition& by) const { return time * (by.time + by.time % 2) / 2; }
  /// Bytes of data, labels, gradient, states, and states of earlier steps and parts.
  uint64_t bytes(const CtcSizes& sizes) const {
    const uint64_t data = batch * time * sizes.classes * kBytes;
    return (sizes.gradient ? 2 : 1) * data + batch * (2 * labels + 4 * states * kBytes);
  }

  uint64_t batch, time, labels;
  bool extra_blank;
  uint64_t states;
};

/// One step of all parts: states come from neighbouring parts of labels and time.
Cost stepCost(const poplar::Target& target, const Part& part, const CtcPartition& by,
              bool gradient) {
  const uint64_t workers = target.getNumWorkerContexts(),
                 turns = ceilDiv(part.batch, workers),  // a worker for each sequence
      cycles = workers * turns * ctcStepCycles(part.labels, part.extra_blank, gradient);
  const uint64_t beside = by.labels > 1 ? 2 : 0, before = by.time > 2 ? part.labels + beside : 0;
  const uint64_t elements = gradient ? 2 + 4 * part.labels : before + beside;
  constexpr double kFewestCycles = 100;  // PopLibs' overhead of small exchanges
  const double bytes = std::max(kFewestCycles * target.getExchangeBytesPerCycle(),
                                static_cast<double>(part.batch * elements * kBytes));
  Cost cost;
  addExchange(cost, target, {bytes * static_cast<double>(by.tiles()), bytes});
  addComputeSet(cost, target, static_cast<double>(cycles), by.tiles());
  return cost;
}

Cost recursions(const poplar::Target& target, const CtcSizes& sizes, const CtcPartition& by) {
  const Part part(sizes, by);
  const auto steps = static_cast<double>(part.steps(by));
  Cost cost = repeatedCost(stepCost(target, part, by, false), steps);
  if (sizes.gradient) cost += repeatedCost(stepCost(target, part, by, true), steps);
  return cost;
}

/// The numbers of parts of n for each part size, so that no part is empty.
std::vector<uint64_t> partsOf(uint64_t n) {
  std::vector<uint64_t> found;
  for (uint64_t size = std::max<uint64_t>(n, 1); size > 0; --size) {
    const uint64_t parts = std::max<uint64_t>(1, ceilDiv(n, size));
    if (found.empty() || found.back() != parts) found.push_back(parts);
  }
  return found;
}

/// A compute set over elements that lie on all tiles.
void addElementwise(Cost& cost, const poplar::Target& target, double elements, double cycles_each) {
  const double tiles = target.getNumTiles(), workers = target.getNumWorkerContexts();
  const double of_worker = std::ceil(elements / tiles / workers);
  constexpr double kOverhead = 20;
  addComputeSet(cost, target, workers * (kOverhead + of_worker * cycles_each),
                target.getNumTiles());
}

}  // namespace

CtcPartition ctcPartition(const poplar::Target& target, const CtcSizes& sizes) {
  const double most = kMemoryProportion * static_cast<double>(target.getBytesPerTile());
  // Whether beyond the memory, bytes if so, cycles, bytes, tiles.
  using Key = std::tuple<bool, uint64_t, double, uint64_t, uint64_t>;
  Key least{true, std::numeric_limits<uint64_t>::max(), 0, 0, 0};
  CtcPartition best;
  for (const uint64_t batch : partsOf(sizes.batch))
    for (const uint64_t labels : partsOf(sizes.labels))
      for (const uint64_t time : partsOf(sizes.time)) {
        const CtcPartition by{batch, labels, time};
        if (by.tiles() > target.getNumTiles()) break;
        const uint64_t bytes = Part(sizes, by).bytes(sizes);
        const bool is_beyond = static_cast<double>(bytes) > most;
        const Key key{is_beyond, is_beyond ? bytes : 0, recursions(target, sizes, by).cycles(),
                      bytes, by.tiles()};
        if (key < least) std::tie(least, best) = std::pair{key, by};
      }
  return best;
}

Cost ctcLossCost(const poplar::Target& target, const CtcSizes& sizes, bool softmax) {
  const CtcPartition by = ctcPartition(target, sizes);
  const Part part(sizes, by);
  const auto tiles = static_cast<double>(by.tiles());
  const auto of_tile = static_cast<double>(part.batch * part.time * sizes.classes * kBytes);
  Cost cost;
  addExchange(cost, target, {of_tile * tiles, of_tile});
  cost += recursions(target, sizes, by);
  // The likelihood: states where alpha and beta meet, of each part and then of all.
  const auto parts = static_cast<double>(by.labels);
  const double workers = target.getNumWorkerContexts();
  const auto states = static_cast<double>(part.batch * part.states);
  addExchange(cost, target, {kBytes * states * tiles, kBytes * states});
  addComputeSet(cost, target, workers * 17 * states, by.tiles());
  addExchange(cost, target, {kBytes * parts * static_cast<double>(sizes.batch), kBytes * parts});
  addComputeSet(cost, target, workers * 17 * parts, by.batch);
  if (sizes.gradient) {
    const auto elements = static_cast<double>(sizes.time * sizes.batch * sizes.classes);
    const double received = kBytes * parts * std::ceil(elements / target.getNumTiles());
    addExchange(cost, target, {kBytes * parts * elements, received});
    addElementwise(cost, target, elements, parts / 2);       // a load of two values for each
    if (softmax) addElementwise(cost, target, elements, 5);  // exp and the difference, in pairs
  }
  cost.raiseTemporaries(part.bytes(sizes), 0, part.bytes(sizes));
  cost.vertex_state_bytes = 64;
  cost.code_bytes = sizes.gradient ? 2048 : 1024;
  return cost;
}

}  // namespace popnn::internal
