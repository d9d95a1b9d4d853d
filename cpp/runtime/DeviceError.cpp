#include "runtime/DeviceError.hpp"

#include <array>

namespace ipujax::runtime {
namespace {

constexpr std::array<std::string_view, 4> kNames{"ipu_reset", "partition_reset", "full_reset",
                                                 "none"};

std::string textOf(const std::string& needs, const std::string& got, Recovery recovery) {
  const std::string text = "[ipu device] needs " + needs + "; got " + got;
  if (recovery == Recovery::kNone)
    return text + " (unrecoverable_runtime_error). Have the machine repaired.";
  const std::string action(nameOf(recovery));
  return text + " (recoverable_runtime_error, recovery_action=" + action +
         "). Call ipujax.reset_device(\"" + action +
         "\"), load the last checkpoint, and run the step again.";
}

}  // namespace

std::string_view nameOf(Recovery recovery) { return kNames.at(static_cast<std::size_t>(recovery)); }

Recovery recoveryByName(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<Recovery>(i);
  throw std::invalid_argument(
      "[reset_device] needs ipu_reset, partition_reset or full_reset; got " + std::string(name) +
      ". Use one of these.");
}

DeviceError::DeviceError(const std::string& needs, const std::string& got, Recovery recovery)
    : std::runtime_error(textOf(needs, got, recovery)), recovery_(recovery) {}

}  // namespace ipujax::runtime
