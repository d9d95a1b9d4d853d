#include <algorithm>
#include <cmath>
#include <map>

#include "engine/build/Draft.hpp"

/// Code and vertex state, which lie on the tiles of an IPU all the time. A step that runs in
/// several places, in a function or a loop, is one step and has its code once.
namespace ipujax::engine::build {
namespace {

/// Of one compute set or exchange: sync, arguments, call. Our estimate of five instructions.
constexpr std::uint64_t kControlBytes = 20;
/// Exchange code is 4 bytes an instruction (ipu.md section 1.8). The bytes that a tile receives
/// with each are fitted to the 136 KB of code that BERT-base is known to have on a tile, taken to
/// be that of 40 samples of 384 tokens with outlining.
constexpr std::uint64_t kInstructionBytes = 4;
constexpr double kBytesPerInstruction = 208;

/// Every compute set and every exchange has one sync; syncs between IPUs are two each.
std::uint64_t controlBytes(const Cost& cost, const Machine& machine) {
  const double sync_cycles = cost.sync_cycles - cost.repeated_sync_cycles;
  const double syncs = cost.link_bytes > 0 ? 2 : std::round(sync_cycles / machine.sync_cycles);
  return static_cast<std::uint64_t>(syncs) * kControlBytes;
}

std::uint64_t exchangeBytes(const Cost& cost, const Machine& machine) {
  const double cycles = cost.exchange_cycles - cost.repeated_exchange_cycles;
  const double received = cycles * machine.exchange_bytes_per_cycle;
  return static_cast<std::uint64_t>(std::ceil(received / kBytesPerInstruction)) * kInstructionBytes;
}

}  // namespace

std::vector<AlwaysThere> codeOfIpus(const Draft& draft) {
  const Image& image = draft.image;
  std::vector<AlwaysThere> found(draft.graph->system.num_ipus);
  for (std::size_t ipu = 0; ipu < found.size(); ++ipu) {
    std::map<std::string, std::uint64_t> vertices;
    for (std::size_t i = 0; i < image.steps.size(); ++i) {
      if (draft.step_removed[i] || !takesPart(draft.step_ipus[i], ipu)) continue;
      const StepDesc& step = image.steps[i];
      found[ipu].vertex_state_bytes += step.cost.vertex_state_bytes;
      found[ipu].control_code_bytes += controlBytes(step.cost, draft.graph->system.machine);
      found[ipu].exchange_code_bytes += exchangeBytes(step.cost, draft.graph->system.machine);
      auto& bytes = vertices[step.kernel];
      bytes = std::max(bytes, step.cost.code_bytes);
    }
    for (const auto& [kernel, bytes] : vertices) found[ipu].vertex_code_bytes += bytes;
  }
  return found;
}

}  // namespace ipujax::engine::build
