#pragma once
#include <vector>

#include "poplar/Device.hpp"

namespace poplar {

/// Lists devices. There is no hardware behind this library, so only modelled ones are ever found.
class DeviceManager {
 public:
  DeviceManager() = default;
  static DeviceManager createDeviceManager() { return {}; }
  std::size_t getNumDevices() const { return 0; }
  std::vector<Device> getDevices() const { return {}; }
  std::vector<Device> getDevices(TargetType type, unsigned requiredNumIPUs) const;
};

}  // namespace poplar
