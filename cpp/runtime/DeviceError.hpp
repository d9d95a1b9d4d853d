#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ipujax::runtime {

/// How to recover devices after an error, from the smallest measure to the largest.
enum class Recovery : std::uint8_t {
  kIpuReset,        ///< reset the IPU and load its memory again
  kPartitionReset,  ///< reset the IPUs of a partition and the links between them
  kFullReset,       ///< switch the machine off and on
  kNone,            ///< nothing: the machine needs repair
};

/// "ipu_reset", "partition_reset", "full_reset", or "none".
std::string_view nameOf(Recovery recovery);
/// Throws std::invalid_argument for other names.
Recovery recoveryByName(std::string_view name);

/// A device failed through no fault of the program or its arguments. The message ends with the part
/// that ipujax.Error parses: "(recoverable_runtime_error, recovery_action=ipu_reset)".
class DeviceError : public std::runtime_error {
 public:
  DeviceError(const std::string& needs, const std::string& got, Recovery recovery);
  Recovery recovery() const { return recovery_; }
  bool isRecoverable() const { return recovery_ != Recovery::kNone; }

 private:
  Recovery recovery_;
};

}  // namespace ipujax::runtime
