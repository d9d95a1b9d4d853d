#include "poplar/internal/EngineProfile.hpp"

#include <algorithm>
#include <charconv>

#include "poplar/Engine.hpp"

namespace poplar::internal {

using ipujax::engine::Cost;
using ipujax::engine::Image;
using ipujax::engine::NodeKind;

ProfileValue::Map accountOf(const Cost& cost) {
  return {{"cycles", cost.cycles()},
          {"computeCycles", cost.compute_cycles},
          {"exchangeCycles", cost.exchange_cycles},
          {"syncCycles", cost.sync_cycles},
          {"linkCycles", cost.link_cycles},
          {"hostCycles", cost.host_cycles},
          {"exchangeBytes", cost.exchange_bytes},
          {"hostBytes", cost.host_bytes},
          {"flops", cost.flops}};
}

namespace {

std::string oneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

/// Finds the Switch over the entry points, which stands alone in the root.
const ipujax::engine::Node* entrySwitch(const Image& image) {
  const auto found = std::ranges::find(image.nodes, NodeKind::kSwitch, &ipujax::engine::Node::kind);
  return found == image.nodes.end() ? nullptr : &*found;
}

}  // namespace

Cost costOfEntry(const Image& image, const std::string& entry,
                 const ipujax::engine::TripMeans& trips) {
  const auto name = std::ranges::find(image.entry_points, entry);
  const auto* node = entrySwitch(image);
  if (!node || name == image.entry_points.end()) return image.cost();
  const auto index = static_cast<std::size_t>(name - image.entry_points.begin());
  return costOf(image, node->children[index], trips);
}

void RunLog::add(std::string name, std::string entry, const Cost& cost,
                 const ipujax::engine::TripMeans& trips) {
  all_cycles_ += cost.cycles();
  if (enabled_) runs_.push_back({std::move(name), std::move(entry), cost, trips});
}

ProfileValue RunLog::profile(double clock_hz) const {
  ProfileValue::Vector runs;
  Cost total;
  for (const auto& run : runs_) {
    total += run.cost;
    ProfileValue::Map entry = accountOf(run.cost);
    entry["name"] = run.name;
    runs.emplace_back(std::move(entry));
  }
  ProfileValue::Map simulation = accountOf(total);
  simulation["seconds"] = clock_hz > 0 ? total.cycles() / clock_hz : 0.0;
  return ProfileValue::Map{{"simulation", std::move(simulation)}, {"runs", std::move(runs)}};
}

std::string RunLog::report(const Image& image, const OptionFlags& options) const {
  std::string text = "ipujax profile 1\n";
  for (const auto& [name, value] : options) {
    if (name.starts_with("profiler.") || name == "debug.instrumentExternalExchange")
      text += "@" + name + " " + oneLine(value) + "\n";
  }
  for (const auto& run : runs_) {
    text += run.entry + " " + oneLine(run.name) + "\n";
    for (std::size_t node = 0; node < run.trips.size(); ++node) {
      if (!run.trips[node]) continue;
      char mean[32] = {};
      std::to_chars(mean, mean + sizeof mean - 1, *run.trips[node]);
      text += "#" + std::to_string(node) + " " + mean + "\n";
    }
  }
  return text + "\n" + image.serialise();
}

void RunLog::print(std::ostream& os) const {
  for (const auto& run : runs_)
    os << run.name << ": " << static_cast<std::uint64_t>(run.cost.cycles()) << " cycles\n";
}

}  // namespace poplar::internal

namespace poplar {

void printExecutionSummary(std::ostream& os, const ProfileValue&,
                           const ProfileValue& executionProfile, const OptionFlags&) {
  const auto& total = executionProfile["simulation"];
  os << "Cycles of " << executionProfile["runs"].size() << " runs: " << total["cycles"]
     << " (compute " << total["computeCycles"] << ", exchange " << total["exchangeCycles"]
     << ", sync " << total["syncCycles"] << ", host " << total["hostCycles"] << ")\n";
}

void printProfileSummary(std::ostream& os, const ProfileValue& graphProfile,
                         const ProfileValue& executionProfile, const OptionFlags& opts) {
  printGraphSummary(os, graphProfile, opts);
  printExecutionSummary(os, graphProfile, executionProfile, opts);
}

}  // namespace poplar
