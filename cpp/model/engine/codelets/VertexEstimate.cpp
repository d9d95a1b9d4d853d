#include "engine/codelets/VertexEstimate.hpp"

#include <bit>

#include "engine/Errors.hpp"
#include "engine/Half.hpp"
#include "engine/codelets/CodeletGuard.hpp"
#include "engine/codelets/HollowVertex.hpp"

namespace ipujax::engine {
std::optional<std::uint64_t> ownEstimate(const VertexRecord& vertex, const IpujaxCodelet& codelet) {
  if (codelet.estimate == nullptr) return std::nullopt;
  try {
    const HollowVertex hollow(vertex, codelet);
    std::uint64_t cycles = 0;
    guarded([&] { cycles = codelet.estimate(hollow.place()); });
    return cycles;
  } catch (const CodeletFault& e) {
    throw poplar_error("[Execute] needs getCycleEstimate() of " + vertex.type +
                       " to give cycles; it " + e.what() + ". Correct it.");
  } catch (const std::exception& e) {
    throw poplar_error("[Execute] needs getCycleEstimate() of " + vertex.type +
                       " to give cycles; it said: " + e.what() + ". Correct it.");
  }
}

std::int64_t bitsOf(double value, ElementType type) {
  switch (type) {
    case ElementType::kHalf:
      return floatToHalf(static_cast<float>(value));
    case ElementType::kFloat:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case ElementType::kDouble:
      return std::bit_cast<std::int64_t>(value);
    case ElementType::kBool:
      return value != 0;
    case ElementType::kUInt64:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(value));
    default:
      return static_cast<std::int64_t>(value);
  }
}

}  // namespace ipujax::engine
