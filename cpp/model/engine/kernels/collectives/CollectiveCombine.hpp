#pragma once
#include <cstdint>
#include <span>

#include "engine/ElementType.hpp"
#include "engine/kernels/reduce/ReduceKernels.hpp"
#include "engine/simd/Isa.hpp"

namespace ipujax::engine::collective {

/// Loops that combine the same elements of many arrays, in the order of the arrays. Sums and
/// products of kHalf have float accumulators; all others are of the element's own type.
struct CombineLoops {
  /// acc[k] = ins[0][k] op ins[1][k] op ... for k < n; with `more`, acc[k] op ins[0][k] op ...
  void (*combine)(const void* const* ins, std::size_t num_ins, std::int64_t n, void* acc,
                  bool more) = nullptr;
  /// acc[k] /= divisor; null where the type has no means.
  void (*divide)(void* acc, std::int64_t n, double divisor) = nullptr;
};

struct CombineTable {
  CombineLoops loops[reduction::kNumReducers][12];
};
IPUJAX_DECLARE_SIMD(const CombineTable& combineTable())

/// Null where the reducer has no meaning for the type.
const CombineLoops* combineLoopsFor(reduction::Reducer reducer, ElementType type);

/// out[k] = combination of ins[..][k], k < n, as elements of `type`. With `mean`, divides by the
/// number of arrays. `out` must not be one of `ins`.
void combineBlock(const CombineLoops& loops, ElementType type, bool mean,
                  std::span<const void* const> ins, std::int64_t n, void* out);
constexpr std::int64_t kCombineBlock = 4096;  ///< most elements of a combineBlock

}  // namespace ipujax::engine::collective
