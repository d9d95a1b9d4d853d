#pragma once
#include <vector>

#include "poplar/Device.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/TargetType.hpp"

namespace poplar {

/// Lists devices. Without hardware, this library only finds modelled devices: as IPU_MODEL and,
/// with IPUJAX_MODEL_AS_IPU=1 in the environment, also as 16 IPUs. Ids 0 to 15 are single IPUs; the
/// pairs and the groups of 4, 8 and 16 follow.
class DeviceManager {
 public:
  DeviceManager() = default;
  static DeviceManager createDeviceManager() { return {}; }
  std::size_t getNumDevices() const;  ///< number of single IPUs
  /// Devices of all sizes. Options as for Target::createIPUTarget.
  std::vector<Device> getDevices(const OptionFlags& opts = {}) const;
  /// Devices of `requiredNumIPUs` IPUs that share no IPU.
  std::vector<Device> getDevices(TargetType type, unsigned requiredNumIPUs,
                                 const OptionFlags& opts = {}) const;
  /// Throws poplar_error for an id that getDevices() does not list.
  Device getDevice(unsigned deviceManagerId, const OptionFlags& opts = {}) const;
  /// Ids of the devices of `numChildDeviceIpus` IPUs in a larger one; throws poplar_error if none.
  std::vector<unsigned> getChildDeviceIds(unsigned parentId, unsigned numChildDeviceIpus = 1) const;
  /// Returns a free device, attached; throws poplar_error if there is none.
  Device acquireAvailableDevice(unsigned numIpus = 1, const OptionFlags& opts = {}) const;
  Device acquireDeviceById(unsigned deviceManagerId, const OptionFlags& opts = {}) const;
};

}  // namespace poplar
