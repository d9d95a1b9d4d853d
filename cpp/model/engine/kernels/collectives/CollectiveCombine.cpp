#include "engine/kernels/collectives/CollectiveCombine.hpp"

#include <algorithm>
#include <array>

#include "engine/Half.hpp"
#include "engine/simd/VectorOps.hpp"

namespace ipujax::engine::collective {

namespace {
// As many streams as a core's prefetchers follow; more arrays take several passes in the cache.
constexpr std::size_t kStreams = 8;
}  // namespace

const CombineLoops* combineLoopsFor(reduction::Reducer reducer, ElementType type) {
  static const CombineTable& table = IPUJAX_PICK(combineTable());
  const CombineLoops& loops = table.loops[static_cast<int>(reducer)][static_cast<int>(type)];
  return loops.combine ? &loops : nullptr;
}

void combineBlock(const CombineLoops& loops, ElementType type, bool mean,
                  std::span<const void* const> ins, std::int64_t n, void* out) {
  alignas(64) std::array<float, kCombineBlock> floats;
  const bool half = type == ElementType::kHalf;
  void* acc = half ? floats.data() : out;
  for (std::size_t i = 0; i < ins.size(); i += kStreams) {
    loops.combine(ins.data() + i, std::min(kStreams, ins.size() - i), n, acc, i > 0);
  }
  if (mean) loops.divide(acc, n, static_cast<double>(ins.size()));
  if (half) simd::floatToHalf(floats.data(), static_cast<std::uint16_t*>(out), n);
}

}  // namespace ipujax::engine::collective
