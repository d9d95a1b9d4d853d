#include "engine/kernels/sort/SortLoops.hpp"

#include <algorithm>

namespace ipujax::engine {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

constexpr std::uint32_t kSign = 0x80000000u;

std::uint32_t ordered(std::uint32_t bits) {
  const auto negative = static_cast<std::uint32_t>(static_cast<std::int32_t>(bits) >> 31);
  return bits ^ (negative | kSign);
}

void totalKeys(const std::uint32_t* x, std::uint32_t flip, std::uint32_t* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = ordered(x[i]) ^ flip;
}

void canonicalKeys(const std::uint32_t* x, std::uint32_t flip, std::uint32_t* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t magnitude = x[i] & ~kSign;
    std::uint32_t bits = magnitude == 0 ? 0 : x[i];
    bits = magnitude > 0x7f800000u ? 0x7fffffffu : bits;
    out[i] = ordered(bits) ^ flip;
  }
}

std::int64_t nextCandidate(const std::uint32_t* keys, std::int64_t begin, std::int64_t n,
                           std::uint32_t limit) {
  constexpr std::int64_t kBlock = 64;
  for (; begin + kBlock <= n; begin += kBlock) {
    std::uint32_t least = ~0u;
    for (std::int64_t i = 0; i < kBlock; ++i) least = std::min(least, keys[begin + i]);
    if (least <= limit) return begin;
  }
  return begin;
}

}  // namespace

extern const SortLoops kSortLoops;  // a const is local otherwise
const SortLoops kSortLoops{totalKeys, canonicalKeys, nextCandidate};

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine
