#pragma once
#include <vector>

#include "poplar/Device.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/TargetType.hpp"

namespace poplar {

/// Lists devices. There is no hardware behind this library, so only modelled ones are ever found:
/// as IPU_MODEL, and with IPUJAX_MODEL_AS_IPU=1 in the environment as IPU too, 16 in number. Ids 0
/// to 15 are single IPUs; then come the pairs and the groups of 4, 8 and 16.
class DeviceManager {
 public:
  DeviceManager() = default;
  static DeviceManager createDeviceManager() { return {}; }
  std::size_t getNumDevices() const;  ///< IPUs
  /// All groups. Options as for Target::createIPUTarget.
  std::vector<Device> getDevices(const OptionFlags& opts = {}) const;
  /// Devices of `requiredNumIPUs` IPUs that share no IPU.
  std::vector<Device> getDevices(TargetType type, unsigned requiredNumIPUs,
                                 const OptionFlags& opts = {}) const;
  /// Throws poplar_error for an id that getDevices() does not have.
  Device getDevice(unsigned deviceManagerId, const OptionFlags& opts = {}) const;
  /// The ids of the devices of `numChildDeviceIpus` IPUs that a larger one consists of.
  std::vector<unsigned> getChildDeviceIds(unsigned parentId, unsigned numChildDeviceIpus = 1) const;
  /// A free device, attached; throws poplar_error where there is none.
  Device acquireAvailableDevice(unsigned numIpus = 1, const OptionFlags& opts = {}) const;
  Device acquireDeviceById(unsigned deviceManagerId, const OptionFlags& opts = {}) const;
};

}  // namespace poplar
