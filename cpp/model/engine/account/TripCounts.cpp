#include "engine/account/TripCounts.hpp"

#include <algorithm>

namespace ipujax::engine {
namespace {

/// Multiplies cycles, traffic and flops by n; memory stays, as tiles hold it once.
Cost repeated(Cost cost, double n) {
  for (double* each :
       {&cost.compute_cycles, &cost.mean_compute_cycles, &cost.exchange_cycles, &cost.sync_cycles,
        &cost.repeated_exchange_cycles, &cost.repeated_sync_cycles, &cost.link_cycles,
        &cost.host_cycles, &cost.exchange_bytes, &cost.link_bytes, &cost.host_bytes, &cost.flops})
    *each *= n;
  return cost;
}

}  // namespace

TripCounts::TripCounts(const Image& image) {
  const bool counts = std::ranges::any_of(
      image.nodes, [](const Node& node) { return node.kind == NodeKind::kRepeatWhile; });
  if (counts) counts_ = std::vector<Count>(image.nodes.size());
}

void TripCounts::clear() {
  for (auto& count : counts_) {
    count.runs.store(0, std::memory_order_relaxed);
    count.iterations.store(0, std::memory_order_relaxed);
  }
}

void TripCounts::add(std::uint32_t node, std::uint64_t iterations) {
  counts_[node].runs.fetch_add(1, std::memory_order_relaxed);
  counts_[node].iterations.fetch_add(iterations, std::memory_order_relaxed);
}

TripMeans TripCounts::means() const {
  TripMeans means(counts_.size());
  for (std::size_t node = 0; node < counts_.size(); ++node) {
    const auto runs = counts_[node].runs.load(std::memory_order_relaxed);
    const auto iterations = counts_[node].iterations.load(std::memory_order_relaxed);
    if (runs > 0) means[node] = static_cast<double>(iterations) / static_cast<double>(runs);
  }
  return means;
}

Cost costOf(const Image& image, std::uint32_t index, const TripMeans& counted) {
  const Node& node = image.nodes[index];
  if (node.kind == NodeKind::kStep) return image.steps[node.value].cost;
  Cost total;
  if (node.kind == NodeKind::kIf || node.kind == NodeKind::kSwitch) {
    // Only one branch runs; the account takes the most expensive.
    for (const auto child : node.children) {
      const Cost cost = costOf(image, child, counted);
      if (cost.cycles() > total.cycles()) total = cost;
    }
    return total;
  }
  if (node.kind == NodeKind::kRepeatWhile) {
    const Cost condition = costOf(image, node.children[0], counted);
    total = costOf(image, node.children[1], counted) + condition;
    const auto measured = counted.empty() ? std::nullopt : counted[index];
    return repeated(total, measured.value_or(static_cast<double>(image.assumed_trip_count))) +
           condition;
  }
  for (const auto child : node.children) total += costOf(image, child, counted);
  if (node.kind == NodeKind::kRepeat) return repeated(total, static_cast<double>(node.value));
  return total;
}

}  // namespace ipujax::engine
