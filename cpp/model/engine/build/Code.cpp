#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "engine/build/Draft.hpp"
#include "engine/codelets/VertexStep.hpp"

/// Code, vertex state and stacks, which the tiles of an IPU always hold. A step that runs several
/// times, in a function or a loop, is one step and has its code once.
namespace ipujax::engine::build {
namespace {

/// A published profile of a program that adds two tensors, with four compute sets, has on each of
/// 1,216 tiles (graphcore/tensorflow, plugin/poplar/docs/logging.rst): 3,168 bytes of stacks, which
/// are six of 512, as PopART sets for workers, and one; 700 of control code; and 289 of code for
/// exchange with the host.
constexpr std::uint64_t kStackBytes = 3168;
constexpr std::uint64_t kHostExchangeBytes = 289;
/// About what remains of that program's control code without its compute sets and exchanges.
constexpr std::uint64_t kControlBytes = 500;
/// For one compute set or exchange: sync, arguments, call. We estimate five instructions.
constexpr std::uint64_t kCallBytes = 20;
/// Exchange code has 4 bytes per instruction (ipu.md section 1.8). The bytes that a tile receives
/// per instruction are fitted to the published 136 KB of code per tile of BERT-base, assumed to be
/// for 40 samples of 384 tokens with outlining.
constexpr std::uint64_t kInstructionBytes = 4;
constexpr double kBytesPerInstruction = 208;

/// Every compute set and every exchange has one sync; a step between IPUs has two.
double syncsOf(const Cost& cost, const Machine& machine) {
  if (cost.link_bytes > 0) return 2;
  return (cost.sync_cycles - cost.repeated_sync_cycles) / machine.sync_cycles;
}

std::uint64_t exchangeBytes(const Cost& cost, const Machine& machine) {
  const double cycles = cost.exchange_cycles - cost.repeated_exchange_cycles;
  const double received = cycles * machine.exchange_bytes_per_cycle;
  return static_cast<std::uint64_t>(std::ceil(received / kBytesPerInstruction)) * kInstructionBytes;
}

/// Users' codelets on the tiles of one IPU. A vertex exists once however many steps run it, and a
/// tile has the code of a type once.
class Codelets {
 public:
  void add(const PlacedVertex& vertex) {
    if (!known_.insert(vertex.id).second) return;
    Tile& tile = tiles_[vertex.tile];
    tile.state += vertex.state_bytes;
    tile.types.insert(vertex.type);
  }
  /// Of the tile with most of it.
  std::uint64_t stateBytes() const {
    std::uint64_t most = 0;
    for (const auto& [tile, load] : tiles_) most = std::max(most, load.state);
    return most;
  }
  std::uint64_t codeBytes() const {
    std::size_t most = 0;
    for (const auto& [tile, load] : tiles_) most = std::max(most, load.types.size());
    return kCodeletCodeBytes * most;
  }

 private:
  struct Tile {
    std::uint64_t state = 0;
    std::set<std::string> types;
  };
  std::map<std::int64_t, Tile> tiles_;
  std::set<std::int64_t> known_;
};

/// By IPU. The steps of a replicated graph's parts name the tiles of the first part.
std::vector<Codelets> codeletsOf(const Draft& draft) {
  const System& system = draft.graph->system;
  std::vector<Codelets> found(system.num_ipus);
  for (std::size_t i = 0; i < draft.image.steps.size(); ++i) {
    if (draft.step_removed[i]) continue;
    for (const PlacedVertex& vertex : placedVertices(draft.image.steps[i])) {
      const auto own = static_cast<std::size_t>(vertex.tile) / system.machine.tiles_per_ipu;
      const bool is_own = own < found.size() && takesPart(draft.step_ipus[i], own);
      for (std::size_t ipu = 0; ipu < found.size(); ++ipu)
        if (is_own ? ipu == own : takesPart(draft.step_ipus[i], ipu)) found[ipu].add(vertex);
    }
  }
  return found;
}

}  // namespace

/// Empty for an IPU that takes no part in the program.
std::vector<TileParts> alwaysThere(const Draft& draft) {
  const Image& image = draft.image;
  const Machine& machine = draft.graph->system.machine;
  std::vector<TileParts> found(draft.graph->system.num_ipus);
  const std::vector<Codelets> codelets = codeletsOf(draft);
  for (std::size_t ipu = 0; ipu < found.size(); ++ipu) {
    TileParts& parts = found[ipu];
    std::map<std::string, std::uint64_t> vertices;
    double syncs = 0;
    for (std::size_t i = 0; i < image.steps.size(); ++i) {
      if (draft.step_removed[i] || !takesPart(draft.step_ipus[i], ipu)) continue;
      const StepDesc& step = image.steps[i];
      const bool runs_codelets = step.attributes.has(kPlacedVertices);
      if (!runs_codelets) parts[TilePart::kVertexState] += step.cost.vertex_state_bytes;
      syncs += syncsOf(step.cost, machine);
      parts[TilePart::kExchangeCode] += exchangeBytes(step.cost, machine);
      auto& bytes = vertices[step.kernel];
      if (!runs_codelets) bytes = std::max(bytes, step.cost.code_bytes);
    }
    parts[TilePart::kVertexState] += codelets[ipu].stateBytes();
    parts[TilePart::kVertexCode] += codelets[ipu].codeBytes();
    for (const auto& [kernel, bytes] : vertices) parts[TilePart::kVertexCode] += bytes;
    if (vertices.empty()) continue;
    parts[TilePart::kStack] = kStackBytes;
    parts[TilePart::kControlCode] +=
        kControlBytes + static_cast<std::uint64_t>(std::round(syncs)) * kCallBytes;
    parts[TilePart::kExchangeCode] += kHostExchangeBytes;
  }
  return found;
}

}  // namespace ipujax::engine::build
