#include "engine/build/GatheredEdges.hpp"

#include <algorithm>
#include <utility>

#include "engine/build/Allocate.hpp"
#include "engine/build/Mapped.hpp"
#include "engine/graph/Planning.hpp"
#include "engine/kernels/move/Edges.hpp"

namespace ipujax::engine {

GatheredEdges::Place GatheredEdges::add(const View& tensor, unsigned tile,
                                        const IpujaxField& field) {
  build::needTiles(graph_, tensor, debug_);
  const auto [found, is_new] = by_type_.try_emplace(tensor.type);
  Gathered& gathered = found->second;
  if (is_new) gathered.variable = graph_.addVariable(tensor.type, 0, unmapped(0), debug_);
  const std::uint64_t bytes = sizeOf(tensor.type);
  const auto begin = static_cast<std::int64_t>(gathered.elements);
  std::int64_t at = begin;
  forEachRun(tensor, [&](std::uint32_t variable, std::int64_t from, std::size_t length) {
    const auto n = static_cast<std::int64_t>(length);
    gathered.runs.push_back({variable, from, at, n, field.direction != kIpujaxIn});
    const std::uint64_t kept = keptBytes(gathered.runs.back(), tile);
    // Only the host copies in what a vertex just writes, to keep the elements that it leaves alone.
    if (kept > 0 && field.direction != kIpujaxOut) gathered.read[tile] += kept;
    if (kept > 0 && field.direction != kIpujaxIn) gathered.written[tile] += kept;
    at += n;
  });
  auto& regions = gathered.regions;
  if (regions.empty() || regions.back().tile != tile) regions.push_back({gathered.elements, tile});
  // Each edge has the alignment of a separate variable.
  const auto end = static_cast<std::uint64_t>(at) * bytes;
  gathered.elements = build::roundedUp(end, build::TileMemory().alignment) / bytes;
  return {gathered.variable, begin};
}

std::uint64_t GatheredEdges::keptBytes(const Run& run, unsigned tile) const {
  const Variable& variable = graph_.variables[run.variable];
  const auto first = static_cast<std::uint64_t>(run.from);
  const auto last = first + static_cast<std::uint64_t>(run.length);
  std::uint64_t elements = 0;
  variable.map->forEachPart(first, last, [&](std::uint32_t on, std::uint64_t b, std::uint64_t e) {
    if (on == tile) elements += e - b;
  });
  return elements * sizeOf(variable.type);
}

void GatheredEdges::finish() {
  for (auto& [type, gathered] : by_type_) {
    Variable& variable = graph_.variables[gathered.variable];
    variable.elements = gathered.elements;
    variable.map = tileMapOf(gathered.elements, std::move(gathered.regions));
    for (const Run& run : gathered.runs) {
      const Parts& parts = graph_.variables[run.variable].parts;
      if (parts.count > 1) variable.parts = parts;
    }
  }
}

/// Data from other tiles arrive in order; only data already on the tile are copied.
Cost GatheredEdges::costOf(const Kept& kept) const {
  Cost cost;
  if (kept.empty()) return cost;
  std::uint64_t most = 0, all = 0;
  for (const auto& [tile, bytes] : kept) {
    most = std::max(most, bytes);
    all += bytes;
  }
  const auto rate = static_cast<std::uint64_t>(graph_.system.machine.memcpy_bytes_per_cycle);
  const std::uint64_t tiles = kept.size();
  addComputeSet(cost, graph_.system, static_cast<double>(ceilDiv(most, rate)), tiles,
                static_cast<double>(all) / static_cast<double>(tiles * rate));
  return cost;
}

ProgramNodePtr GatheredEdges::step(const Gathered& gathered, bool scatters) const {
  const auto node = makeNode(ProgramKind::kStep, debug_);
  node->step.kernel = kEdges;
  std::map<std::uint32_t, std::int64_t> index;
  Attributes::Integers runs;
  // In the edges' type: elements may be reinterpreted from another type of their size.
  const ElementType type = graph_.variables[gathered.variable].type;
  const auto whole = [&](std::uint32_t id) {
    return share(wholeVariable(id, type, {graph_.variables[id].elements}));
  };
  for (const Run& run : gathered.runs) {
    if (scatters && !run.is_written) continue;
    const auto next = static_cast<std::int64_t>(index.size()) + 1;
    const auto [found, is_new] = index.try_emplace(run.variable, next);
    if (is_new)
      node->step.operands.push_back(
          {whole(run.variable), scatters ? Access::kReadWrite : Access::kRead});
    runs.insert(runs.end(), {found->second, run.from, run.to, run.length});
  }
  if (runs.empty()) return nullptr;
  node->step.operands.insert(node->step.operands.begin(),
                             {whole(gathered.variable), scatters ? Access::kRead : Access::kWrite});
  node->step.attributes.set(kEdgeRuns, std::move(runs));
  node->step.attributes.set(kScatters, std::int64_t{scatters});
  node->step.cost = costOf(scatters ? gathered.written : gathered.read);
  return node;
}

std::vector<ProgramNodePtr> GatheredEdges::gathers() const {
  std::vector<ProgramNodePtr> nodes;
  for (const auto& [type, gathered] : by_type_) nodes.push_back(step(gathered, false));
  return nodes;
}

std::vector<ProgramNodePtr> GatheredEdges::scatters() const {
  std::vector<ProgramNodePtr> nodes;
  for (const auto& [type, gathered] : by_type_)
    if (auto node = step(gathered, true)) nodes.push_back(std::move(node));
  return nodes;
}

}  // namespace ipujax::engine
