#include "engine/codelets/VertexCost.hpp"

#include <algorithm>
#include <set>

#include "engine/Errors.hpp"
#include "engine/codelets/CodeletBuild.hpp"
#include "engine/codelets/CodeletGuard.hpp"
#include "engine/codelets/CodeletText.hpp"
#include "engine/codelets/VertexCount.hpp"
#include "engine/codelets/VertexEstimate.hpp"
#include "engine/codelets/VertexStep.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/Planning.hpp"

namespace ipujax::engine {
namespace {

constexpr double kSupervisorCycles = 11;  // to launch workers: PopLibs' estimators

/// Estimators are user code, as codelets are.
std::pair<std::uint64_t, std::uint64_t> estimateOf(const VertexRecord& vertex,
                                                   const VertexStore::Estimator& estimator) {
  std::pair<std::uint64_t, std::uint64_t> estimate;
  try {
    guarded([&] { estimate = estimator(vertex); });
  } catch (const CodeletFault& e) {
    throw poplar_error("[Graph::registerPerfEstimator] needs an estimator that returns; that of " +
                       vertex.type + " " + e.what() + ". Correct its code.");
  }
  return estimate;
}

}  // namespace

TileLoad& VertexCosts::loadOf(unsigned tile) {
  TileLoad& load = tiles_[tile];
  load.workers.resize(graph_.system.machine.worker_contexts);
  return load;
}

void VertexCosts::addMoved(LinkBytes& links, unsigned from, unsigned to, TileLoad& load,
                           double bytes) {
  const unsigned tiles = graph_.system.machine.tiles_per_ipu;
  if (from / tiles == to / tiles)
    load.received += bytes;
  else
    links[{from / tiles, to / tiles}] += bytes;
}

void VertexCosts::addRead(unsigned tile, unsigned on, double bytes) {
  addMoved(read_, on, tile, loadOf(tile), bytes);
}

void VertexCosts::addWritten(unsigned tile, unsigned on, double bytes) {
  addMoved(written_, tile, on, loadOf(tile), bytes);
}

double VertexCosts::assumedOf(const VertexRecord& vertex, std::uint64_t largest_edge) const {
  std::size_t file = 0;
  const CodeletClass* found = graph_.vertices->findClass(vertex.type, file);
  const double loop = found != nullptr ? found->loop_cycles : 0;
  return 30 + (loop > 0 ? loop : 10) * static_cast<double>(largest_edge);
}

void VertexCosts::add(const VertexRecord& vertex, const IpujaxCodelet& codelet,
                      std::uint64_t largest_edge) {
  VertexStore& store = *graph_.vertices;
  auto cycles = vertex.cycles;
  auto flops = vertex.flops;
  const auto estimator = store.estimators.find(vertex.type);
  if (!cycles && estimator != store.estimators.end())
    std::tie(cycles, flops) = estimateOf(vertex, estimator->second);
  if (!cycles) cycles = ownEstimate(vertex, codelet);
  flops_ += static_cast<double>(flops);
  Entry entry{&vertex, codelet.is_multi != 0,    0, cycles.has_value(),
              "",      codelet.num_fields + 1.0, 0};
  if (cycles) {
    entry.cycles = static_cast<double>(*cycles);
  } else {
    entry.assumed = assumedOf(vertex, largest_edge) + (entry.is_multi ? kSupervisorCycles : 0);
    entry.cycles = entry.assumed;
  }
  const std::string& text = store.files[vertex.file].text;
  if (cycles ? movesPointers(text) : usesIntrinsics(text)) entry.signature = signatureOf(vertex);
  entries_.push_back(std::move(entry));
}

void VertexCosts::countThem(const std::string& unit) {
  VertexStore& store = *graph_.vertices;
  std::vector<const VertexRecord*> vertices;
  std::vector<std::string> signatures;
  for (const Entry& entry : entries_) {
    if (entry.signature.empty() || !store.counts.try_emplace(entry.signature).second) continue;
    vertices.push_back(entry.vertex);
    signatures.push_back(entry.signature);
  }
  if (vertices.empty()) return;
  try {
    const auto library =
        CodeletLibrary::compile(withCycles(unit), store.files[vertices.front()->file].flags);
    const auto counts = countSlots(*library, vertices);
    for (std::size_t i = 0; i < counts.size(); ++i) store.counts[signatures[i]] = counts[i];
  } catch (const poplar_error&) {  // no compiler, as with a trusted .gp: assumed cycles stay
  }
}

double VertexCosts::cyclesOf(const Entry& entry) const {
  if (entry.is_known || entry.signature.empty()) return entry.cycles;
  const auto counted = graph_.vertices->counts.find(entry.signature);
  if (counted == graph_.vertices->counts.end() || !counted->second.slots) return entry.assumed;
  const double slots = entry.entry_slots + static_cast<double>(*counted->second.slots);
  return entry.is_multi ? kSupervisorCycles + kIpujaxWorkers * slots : slots;
}

bool VertexCosts::leavesMemory() const {
  const auto& counts = graph_.vertices->counts;
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    const auto counted = counts.find(entry.signature);
    return counted != counts.end() && counted->second.leaves_memory;
  });
}

Cost VertexCosts::total(const std::string& unit, std::size_t types) {
  countThem(unit);
  for (const Entry& entry : entries_) {
    TileLoad& load = loadOf(*entry.vertex->tile);
    if (entry.is_multi)
      load.supervisor += cyclesOf(entry);
    else
      load.workers[load.next_worker++ % load.workers.size()] += cyclesOf(entry);
  }
  Cost cost;
  double worst = 0, total = 0, received = 0, worst_received = 0;
  for (const auto& [tile, load] : tiles_) {
    const double slowest = *std::max_element(load.workers.begin(), load.workers.end());
    const double cycles = load.supervisor + slowest * static_cast<double>(load.workers.size());
    worst = std::max(worst, cycles);
    total += cycles;
    received += load.received;
    worst_received = std::max(worst_received, load.received);
    cost.vertex_state_bytes = std::max(cost.vertex_state_bytes, load.state);
  }
  if (received > 0) addExchange(cost, graph_.system, {received, worst_received});
  addLinkTransfer(cost, graph_.system, read_);
  addLinkTransfer(cost, graph_.system, written_);
  addComputeSet(cost, graph_.system, worst, tiles_.size(),
                total / static_cast<double>(std::max<std::size_t>(tiles_.size(), 1)));
  cost.flops = flops_;
  cost.code_bytes = kCodeletCodeBytes * types;
  return cost;
}

}  // namespace ipujax::engine
