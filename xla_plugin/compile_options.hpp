#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ipujax::plugin {

/// Which devices run a program: one row per replica, one column per partition.
struct DeviceAssignment {
  int num_replicas = 1;
  int num_partitions = 1;
  std::vector<int> device_ids;  ///< [replica * num_partitions + partition]

  /// As xla.DeviceAssignmentProto.
  std::string serialise() const;
};

/// Reads the device assignment out of a serialised xla.CompileOptionsProto. Without one the
/// program's partitions run on `default_devices`.
DeviceAssignment readDeviceAssignment(std::string_view compile_options,
                                      std::span<const std::int32_t> default_devices);

}  // namespace ipujax::plugin
