#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace ipujax::runtime {

/// The memories of a device in which arguments and results lie.
enum class MemoryKind : std::uint8_t {
  kDevice,      ///< tile memory
  kPinnedHost,  ///< streaming memory: DRAM of the machine, which programs reach as remote buffers
};

/// JAX's names, by kind.
inline constexpr std::array kMemoryKindNames{"device", "pinned_host"};

inline const char* nameOf(MemoryKind kind) {
  return kMemoryKindNames.at(static_cast<std::size_t>(kind));
}

inline MemoryKind memoryKindByName(const std::string& name) {
  for (std::size_t i = 0; i < kMemoryKindNames.size(); ++i)
    if (name == kMemoryKindNames[i]) return static_cast<MemoryKind>(i);
  throw std::invalid_argument("[memory] needs the kind 'device' or 'pinned_host'; got '" + name +
                              "'. Use one of these.");
}

}  // namespace ipujax::runtime
