#include "engine/kernels/collectives/CollectiveCombine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "engine/Half.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine::collective {
namespace {

using Block = std::array<std::byte, kCombineBlock * kMostBytes>;

std::size_t membersOf(std::span<const CombineSource> sources) {
  std::size_t members = 0;
  for (const auto& source : sources) members += source.count();
  return members;
}

bool areLeaves(std::span<const CombineSource> sources) {
  return sources.size() <= kMostLeaves && std::has_single_bit(sources.size()) &&
         std::ranges::all_of(sources, [](const auto& source) { return source.members == 0; });
}

/// The number of sources that cover the first `members`.
std::size_t sourcesOf(std::span<const CombineSource> sources, std::size_t members) {
  std::size_t n = 0;
  for (std::size_t covered = 0; covered < members; ++n) covered += sources[n].count();
  return n;
}

}  // namespace

const CombineLoops* combineLoopsFor(reduction::Reducer reducer, ElementType type) {
  static const CombineTable& table = IPUJAX_PICK(combineTable());
  const CombineLoops& loops = table.loops[static_cast<int>(reducer)][static_cast<int>(type)];
  return loops.combine ? &loops : nullptr;
}

std::size_t leftOf(std::size_t members) { return std::bit_floor(members - 1); }

const void* combineTree(const CombineLoops& loops, std::span<const CombineSource> sources,
                        std::int64_t n, void* acc) {
  if (areLeaves(sources)) {
    std::array<const void*, kMostLeaves> leaves;
    for (std::size_t i = 0; i < sources.size(); ++i) leaves[i] = sources[i].data;
    loops.combine(leaves.data(), sources.size(), n, acc);
    return acc;
  }
  if (sources.size() == 1) return sources.front().data;
  alignas(64) Block scratch;
  const std::size_t half = sourcesOf(sources, leftOf(membersOf(sources)));
  const void* const left = combineTree(loops, sources.first(half), n, acc);
  const void* const right = combineTree(loops, sources.subspan(half), n, scratch.data());
  loops.join(left, right, n, acc);
  return acc;
}

void finishBlock(const CombineLoops& loops, ElementType type, std::size_t mean_of,
                 const void* combined, std::int64_t n, void* out) {
  const std::size_t bytes = static_cast<std::size_t>(n) * accumulatorBytes(type);
  const bool half = type == ElementType::kHalf;
  alignas(64) std::array<float, kCombineBlock> floats;
  if (mean_of > 0) {
    void* acc = half ? floats.data() : out;
    if (acc != combined) std::memcpy(acc, combined, bytes);
    loops.divide(acc, n, static_cast<double>(mean_of));
    combined = acc;
  }
  if (half) {
    simd::floatToHalf(static_cast<const float*>(combined), static_cast<std::uint16_t*>(out), n);
  } else if (out != combined) {
    std::memcpy(out, combined, bytes);
  }
}

}  // namespace ipujax::engine::collective
