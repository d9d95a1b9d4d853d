#pragma once
#include <cstdint>
#include <span>

#include "engine/ElementType.hpp"
#include "engine/kernels/reduce/ReduceKernels.hpp"
#include "engine/simd/Isa.hpp"

namespace ipujax::engine::collective {

/// Loops that combine the same elements of many arrays. Sums and products of kHalf have float
/// accumulators; all others are of the element's own type.
struct CombineLoops {
  /// acc[k] = the balanced tree over ins[..][k], k < n; 1, 2, 4 or 8 arrays.
  void (*combine)(const void* const* ins, std::size_t num_ins, std::int64_t n, void* acc) = nullptr;
  /// acc[k] = a[k] op b[k], all accumulators; acc may be a or b.
  void (*join)(const void* a, const void* b, std::int64_t n, void* acc) = nullptr;
  /// acc[k] /= divisor; null where the type has no means.
  void (*divide)(void* acc, std::int64_t n, double divisor) = nullptr;
};

struct CombineTable {
  CombineLoops loops[reduction::kNumReducers][12];
};
IPUJAX_DECLARE_SIMD(const CombineTable& combineTable())

/// Null where the reducer has no meaning for the type.
const CombineLoops* combineLoopsFor(reduction::Reducer reducer, ElementType type);

constexpr std::size_t kMostLeaves = 8;        ///< as many streams as a core's prefetchers follow
constexpr std::int64_t kCombineBlock = 4096;  ///< most elements of a block
constexpr std::size_t kMostBytes = 8;         ///< of an accumulator

constexpr std::size_t accumulatorBytes(ElementType type) {
  return type == ElementType::kHalf ? sizeof(float) : sizeOf(type);
}

/// Elements of one member of a group, or what a subtree of `members` of them was combined to.
struct CombineSource {
  const void* data;
  std::size_t members = 0;  ///< 0: a member's own elements
  std::size_t count() const { return members == 0 ? 1 : members; }
};

/// How many members the left half of the tree over `members` of them has: the largest power of two
/// below. So the tree depends on the number of members alone, not on who computes which part.
std::size_t leftOf(std::size_t members);

/// Combines n <= kCombineBlock elements of the members that `sources` cover in order. Returns
/// `acc`, or the data of a source that needs no combination. Sources must be subtrees of that tree.
const void* combineTree(const CombineLoops& loops, std::span<const CombineSource> sources,
                        std::int64_t n, void* acc);

/// out[k] = the combined elements as elements of `type`; a mean is divided by `members`.
void finishBlock(const CombineLoops& loops, ElementType type, std::size_t mean_of,
                 const void* combined, std::int64_t n, void* out);

}  // namespace ipujax::engine::collective
