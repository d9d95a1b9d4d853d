#include "engine/build/ProfileFill.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "engine/account/VertexCounts.hpp"
#include "engine/build/VertexTypes.hpp"

namespace ipujax::engine::build {
namespace {

/// Per operand; one with more runs counts as all elements between its first and its last.
constexpr std::int64_t kRunsWalked = 4096;
constexpr std::size_t kTensorsListed = 256;  ///< the largest, and as many on the fullest tiles

std::uint32_t narrow(std::uint64_t bytes) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(bytes, std::numeric_limits<std::uint32_t>::max()));
}

/// Calls fn(first, behind) for each contiguous run of an operand's elements in its buffer.
template <class F>
void forEachRun(const OperandDesc& o, const F& fn) {
  std::size_t inner = o.shape.size();
  std::int64_t along = 1;  // elements of a run
  for (; inner > 0 && (o.strides[inner - 1] == along || o.shape[inner - 1] == 1); --inner)
    along *= o.shape[inner - 1];
  std::int64_t runs = 1;
  for (std::size_t d = 0; d < inner; ++d) runs *= o.strides[d] == 0 ? 1 : o.shape[d];
  if (o.numElements() == 0) return;
  if (runs > kRunsWalked) {
    const auto extent = o.extent();
    return fn(extent.first, extent.first + extent.elements);
  }
  for (std::int64_t run = 0; run < runs; ++run) {
    std::int64_t at = o.offset;
    std::int64_t rest = run;
    for (std::size_t d = inner; d-- > 0;) {
      if (o.strides[d] == 0) continue;
      at += rest % o.shape[d] * o.strides[d];
      rest /= o.shape[d];
    }
    fn(at, at + along);
  }
}

/// Sorted runs of the tiles that are marked.
std::vector<std::uint32_t> runsOf(const std::vector<bool>& tiles) {
  std::vector<std::uint32_t> runs;
  for (std::uint32_t t = 0; t <= tiles.size(); ++t) {
    const bool is_in = t < tiles.size() && tiles[t];
    if (is_in == (runs.size() % 2 == 0)) runs.push_back(t);
  }
  return runs;
}

}  // namespace

ProfileFill::ProfileFill(Draft& draft) : draft_(draft), profile_(*draft.image.profile) {
  const System& system = draft.graph->system;
  tiles_per_ipu_ = system.machine.tiles_per_ipu;
  profile_.categories.assign(kPartNames.begin(), kPartNames.end());
  profile_.ipus.resize(system.num_ipus);
  for (TileProfile& ipu : profile_.ipus)
    ipu.tile_bytes.assign(profile_.categories.size() * tiles_per_ipu_, 0);
  // A unit takes a weight of each of its input channels in four cycles; a product is two flops.
  // A tile does a quarter with 32-bit operands: 250 and 62.5 TFLOPS are published for a GC200.
  const Machine& machine = system.machine;
  profile_.half_flops_per_cycle =
      2.0 / 4 * machine.fp16_in_fp16_out_units * machine.weights_per_unit_fp16 * system.numTiles();
  profile_.float_flops_per_cycle = profile_.half_flops_per_cycle / 4;
  findShapes();
}

/// The shape of a variable is that of the first operand that is all of it, in order.
void ProfileFill::findShapes() {
  const auto& variables = draft_.graph->variables;
  shapes_.resize(variables.size());
  for (const StepDesc& step : draft_.image.steps) {
    for (const OperandDesc& o : step.operands) {
      const std::uint32_t variable = draft_.storages[o.buffer].variable;
      if (!shapes_[variable].empty() || !o.isContiguous()) continue;
      if (static_cast<std::uint64_t>(o.numElements()) == variables[variable].elements)
        shapes_[variable].assign(o.shape.begin(), o.shape.end());
    }
  }
}

void ProfileFill::add(std::uint32_t variable, TilePart part, bool always_live) {
  const Variable& from = draft_.graph->variables[variable];
  TensorProfile tensor;
  tensor.category = static_cast<std::uint32_t>(part);
  tensor.type = from.type;
  tensor.shape = shapes_[variable];
  if (tensor.shape.empty() && from.elements != 1)
    tensor.shape = {static_cast<std::int64_t>(from.elements)};
  tensor.bytes = from.elements * sizeOf(from.type);
  tensor.always_live = always_live;
  profile_.tensors.push_back(std::move(tensor));
  variables_.push_back(variable);
}

void ProfileFill::beginPeak(std::size_t ipu, std::uint32_t tile) {
  ipu_ = ipu;
  const auto first = static_cast<std::uint32_t>(ipu * tiles_per_ipu_);
  profile_.ipus[ipu].fullest_tile = std::max(tile, first) - first;
}

std::uint32_t& ProfileFill::bytesOf(std::size_t category, std::size_t tile) {
  return profile_.ipus[ipu_].tile_bytes[category * tiles_per_ipu_ + tile];
}

void ProfileFill::addLive(std::size_t held) {
  TensorProfile& tensor = profile_.tensors[held];
  const Variable& variable = draft_.graph->variables[variables_[held]];
  const auto& counts = variable.map->per_tile;
  const std::size_t first = ipu_ * tiles_per_ipu_;
  const std::size_t fullest = first + profile_.ipus[ipu_].fullest_tile;
  std::uint64_t on_ipu = 0;
  for (std::size_t t = first; t < std::min(counts.size(), first + tiles_per_ipu_); ++t) {
    const std::uint64_t bytes = std::uint64_t{counts[t]} * sizeOf(variable.type);
    bytesOf(tensor.category, t - first) += narrow(bytes);
    on_ipu += bytes;
    if (t == fullest) tensor.peak_tile_bytes = std::max(tensor.peak_tile_bytes, bytes);
  }
  if (on_ipu > 0) tensor.live_at_peak |= std::uint64_t{1} << std::min<std::size_t>(ipu_, 63);
}

void ProfileFill::addToTiles(const std::function<TileParts(std::size_t)>& parts_of) {
  for (std::size_t t = 0; t < tiles_per_ipu_; ++t) {
    const TileParts parts = parts_of(ipu_ * tiles_per_ipu_ + t);
    for (std::size_t category = 0; category < parts.bytes.size(); ++category)
      bytesOf(category, t) += narrow(parts.bytes[category]);
  }
}

void ProfileFill::finish() {
  auto& tensors = profile_.tensors;
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{},
                           [&](auto i) { return tensors[i].peak_tile_bytes; });
  std::vector<bool> kept(tensors.size());
  for (std::size_t i = 0; i < std::min(order.size(), kTensorsListed); ++i)
    kept[order[i]] = tensors[order[i]].peak_tile_bytes > 0;
  std::ranges::stable_sort(order, std::greater{}, [&](auto i) { return tensors[i].bytes; });
  for (std::size_t i = 0; i < std::min(order.size(), kTensorsListed); ++i) kept[order[i]] = true;

  auto& debug = draft_.image.debug;
  std::map<std::pair<std::string, std::string>, std::uint32_t> known;
  for (std::uint32_t i = 0; i < debug.size(); ++i)
    known.emplace(std::pair(debug[i].name, debug[i].source), i);
  std::vector<TensorProfile> list;
  for (const std::size_t i : order) {
    if (!kept[i]) continue;
    const DebugContext& context = draft_.graph->variables[variables_[i]].debug;
    const auto key = std::pair(context.getPathName(), context.source());
    const auto [found, fresh] = known.emplace(key, debug.size());
    if (fresh) debug.push_back({key.first, key.second});
    tensors[i].debug = found->second;
    list.push_back(std::move(tensors[i]));
  }
  tensors = std::move(list);
  nameNodes();
  listVertices();
}

/// One vertex on each tile where a step writes, for all workers, as PopLibs' MultiVertex is.
void ProfileFill::listVertices() {
  const auto& variables = draft_.graph->variables;
  const auto& machine = draft_.graph->system.machine;
  auto& steps = draft_.image.steps;
  std::vector<bool> tiles(draft_.graph->system.numTiles());
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (draft_.step_removed[s]) continue;
    const Cost& cost = steps[s].cost;
    std::vector<LibraryVertices> found;
    const auto types = vertexTypes(steps[s], cost.sync_cycles / machine.sync_cycles);
    for (const VertexType& type : types) {
      tiles.assign(tiles.size(), false);
      for (const std::uint32_t operand : type.operands) {
        const OperandDesc& o = steps[s].operands[operand];
        const Variable& variable = variables[draft_.storages[o.buffer].variable];
        if (variable.is_remote || !variable.map) continue;
        forEachRun(o, [&](std::int64_t first, std::int64_t behind) {
          variable.map->forEachPart(static_cast<std::uint64_t>(first),
                                    static_cast<std::uint64_t>(behind),
                                    [&](std::uint32_t tile, auto, auto) {
                                      if (tile < tiles.size()) tiles[tile] = true;
                                    });
        });
      }
      LibraryVertices vertices{type.name, narrow(cost.vertex_state_bytes / types.size()),
                               narrow(cost.code_bytes / types.size()), runsOf(tiles)};
      if (!vertices.runs.empty()) found.push_back(std::move(vertices));
    }
    setLibraryVertices(steps[s], found);
  }
}

/// Steps occur in the order of the nodes that name them.
void ProfileFill::nameNodes() {
  std::size_t node = 0;
  for (LivePoint& point : profile_.live) {
    const auto& nodes = draft_.image.nodes;
    while (node < nodes.size() && nodes[node].kind != NodeKind::kStep) ++node;
    point.node = std::min(node++, nodes.size() - 1);
  }
}

}  // namespace ipujax::engine::build
