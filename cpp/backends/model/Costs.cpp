#include <algorithm>
#include <string>
#include <vector>

#include "backends/model/Program.hpp"
#include "engine/account/Times.hpp"

namespace ipujax::model {
namespace {

using Costs = std::map<std::string, float>;

std::uint64_t totalBytes(const std::vector<runtime::TensorSpec>& tensors) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += tensor.bytes;
  return bytes;
}

/// Adds the contents of the fullest tile, under names that begin with `of`.
void addParts(Costs& costs, const std::string& of, const engine::TileParts& parts) {
  for (std::size_t i = 0; i < parts.bytes.size(); ++i)
    costs.insert_or_assign(of + "worst tile " + std::string(engine::kPartNames[i]) + " bytes",
                           static_cast<float>(parts.bytes[i]));
}

/// Adds the trip counts that the last run measured for loops of unknown length, and the cycles of
/// the program with these counts. Adds nothing before the first run.
void addMeasured(Costs& costs, const engine::Image& image, const engine::TripMeans& counted) {
  if (counted.empty()) return;
  std::size_t loop = 0;
  for (std::uint32_t node = 0; node < image.nodes.size(); ++node) {
    if (image.nodes[node].kind != engine::NodeKind::kRepeatWhile) continue;
    const std::string name = "loop " + std::to_string(loop++) + " measured trip count";
    if (counted[node]) costs.insert_or_assign(name, static_cast<float>(*counted[node]));
  }
  const double more = engine::costOf(image, 0, counted).cycles() - image.cost().cycles();
  costs.insert_or_assign("measured cycles", static_cast<float>(image.elapsedCycles() + more));
}

}  // namespace

Costs costsOf(const engine::Image& image, const engine::TripMeans& counted) {
  const auto cost = image.cost();
  const auto collectives = engine::collectivesOf(image);
  const auto moved = static_cast<double>(totalBytes(image.signature.inputs) +
                                         totalBytes(image.signature.outputs)) +
                     cost.exchange_bytes;
  const double cycles = image.elapsedCycles();
  double streaming_cycles = 0;
  double io_cycles = 0;
  double hidden_cycles = 0;
  for (const auto& ipu : image.ipus) {
    streaming_cycles += ipu.host_cycles;
    io_cycles += ipu.io_cycles;
    hidden_cycles += ipu.hidden_io_cycles;
  }
  const double seconds = image.clock_hz > 0 ? cycles / image.clock_hz : 0;
  const auto real = [](double value) { return static_cast<float>(value); };
  Costs costs{{"flops", real(cost.flops)},
              {"bytes accessed", real(moved)},
              {"optimal_seconds", real(seconds)},
              {"seconds", real(seconds)},
              {"cycles", real(cycles)},
              {"compute cycles", real(cost.compute_cycles)},
              {"exchange cycles", real(cost.exchange_cycles)},
              {"sync cycles", real(cost.sync_cycles)},
              {"link cycles", real(cost.link_cycles - streaming_cycles)},
              {"host cycles", real(streaming_cycles + io_cycles)},
              {"hidden host cycles", real(hidden_cycles)},
              {"host bytes", real(cost.host_bytes)},
              {"cycles without host", real(image.cycles_without_host)},
              {"exchange bytes", real(cost.exchange_bytes)},
              {"link bytes", real(cost.link_bytes)},
              {"replicas", static_cast<float>(image.signature.num_replicas)},
              {"collective cycles", real(collectives.cycles)},
              {"collective bytes", real(collectives.link_bytes)},
              {"worst tile bytes", real(static_cast<double>(image.memory.worst_tile_bytes))}};
  const auto loops = image.unknownLoops();
  costs.insert_or_assign("unknown trip counts", static_cast<float>(loops.count));
  if (loops.count > 0) {
    costs.insert_or_assign("assumed trip count", static_cast<float>(image.assumed_trip_count));
    costs.insert_or_assign("cycles per iteration", real(loops.iteration_cycles));
    addMeasured(costs, image, counted);
  }
  for (std::size_t i = 0; image.ipus.size() > 1 && i < image.ipus.size(); ++i) {
    const std::string ipu = "ipu " + std::to_string(i) + " ";
    costs.insert_or_assign(ipu + "compute cycles", real(image.ipus[i].compute_cycles));
    costs.insert_or_assign(ipu + "exchange cycles", real(image.ipus[i].exchange_cycles));
    costs.insert_or_assign(ipu + "link cycles", real(image.ipus[i].link_cycles));
    costs.insert_or_assign(ipu + "host cycles",
                           real(image.ipus[i].host_cycles + image.ipus[i].io_cycles));
    costs.insert_or_assign(ipu + "idle cycles", real(image.ipus[i].idle_cycles));
    costs.insert_or_assign(ipu + "worst tile bytes",
                           real(static_cast<double>(image.ipus[i].worst_tile_bytes)));
    addParts(costs, ipu, image.ipus[i].worst_tile);
  }
  const auto fullest =
      std::ranges::max_element(image.ipus, {}, &engine::IpuAccount::worst_tile_bytes);
  if (fullest != image.ipus.end()) addParts(costs, "", fullest->worst_tile);
  return costs;
}

}  // namespace ipujax::model
