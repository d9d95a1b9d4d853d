#include "engine/kernels/CopyCombine.hpp"

#include <array>
#include <string>

#include "engine/Errors.hpp"

namespace ipujax::engine {
namespace {

constexpr std::array<const char*, kNumCombines> kNames = {"add", "mul", "min",       "max",
                                                          "and", "or",  "scaled_add"};

}  // namespace

namespace simd {
static Combiner pickCombine(Combine op, ElementType type) {
  return IPUJAX_PICK(findCombine)(op, type);
}
}  // namespace simd

Combine combineByName(std::string_view name) {
  for (int i = 0; i < kNumCombines; ++i) {
    if (name == kNames[static_cast<std::size_t>(i)]) return static_cast<Combine>(i);
  }
  throw poplar_error("[scatter] needs an update add, mul, min, max, and, or or scaled_add; got '" +
                     std::string(name) + "'. Give other updates as an expression.");
}

Combiner combinerOf(Combine op, ElementType type) {
  const Combiner combiner = simd::pickCombine(op, type);
  if (combiner.run) return combiner;
  throw poplar_error(std::string("[scatter] cannot do '") + kNames[static_cast<std::size_t>(op)] +
                     "' on " + nameOf(type) + " elements. Cast the operand and the updates first.");
}

}  // namespace ipujax::engine
