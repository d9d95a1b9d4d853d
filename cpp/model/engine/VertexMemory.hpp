#pragma once
#include <cstdint>

namespace ipujax::engine {

/// How a step's vertices need their operands placed in a tile's memory elements: the constraints of
/// their codelets in PopLibs. Sets hold operands, by index, and the step's own temporaries.
struct VertexMemory {
  static constexpr std::uint16_t operand(unsigned index) {
    return static_cast<std::uint16_t>(1u << index);
  }
  static constexpr std::uint16_t kSums = 1u << 8;             ///< temporaries not listed below
  static constexpr std::uint16_t kInputRearranged = 1u << 9;  ///< see Cost::rearranged_bytes
  static constexpr std::uint16_t kWeightsRearranged = 1u << 10;
  static constexpr std::uint16_t kInputReceived = 1u << 11;  ///< see Cost::received_bytes
  static constexpr std::uint16_t kWeightsReceived = 1u << 12;

  std::uint64_t weights_rearranged_bytes = 0;  ///< of Cost::rearranged_bytes
  std::uint64_t weights_received_bytes = 0;    ///< of Cost::received_bytes
  std::uint32_t interleaved = 0;               ///< a set: read or written 16 bytes at a time
  /// Two sets that must not share a memory element.
  std::uint16_t first = 0, second = 0;

  bool any() const { return interleaved != 0 || first != 0; }
};

}  // namespace ipujax::engine
