#include "poplar/Device.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "poplar/DeviceManager.hpp"
#include "poplar/exceptions.hpp"

namespace poplar {

using ipujax::engine::System;

namespace {

/// IPUs listed with IPUJAX_MODEL_AS_IPU=1: the largest part of a rack that one host has.
constexpr unsigned kListedIpus = 16;

bool listsModelAsIpus() {
  const char* given = std::getenv("IPUJAX_MODEL_AS_IPU");
  return given && std::string_view(given) == "1";
}

Device modelOf(TargetType type, unsigned num_ipus, unsigned id) {
  const auto& machine = ipujax::engine::machines().front();
  return Device(Target(System{machine, num_ipus, type}), id);
}

/// The first id of devices with this many IPUs; 0 for numbers other than 1, 2, 4, 8 and 16.
unsigned firstIdOf(unsigned num_ipus) {
  unsigned first = 0;
  for (unsigned size = 1; size <= kListedIpus; size *= 2) {
    if (size == num_ipus) return first;
    first += kListedIpus / size;
  }
  return 0;
}

}  // namespace

std::vector<int> Device::getDriverIDs() const {
  const unsigned n = target_.getNumIPUs();
  const unsigned first = firstIdOf(n);
  std::vector<int> ids(n);
  std::iota(ids.begin(), ids.end(), static_cast<int>((id_ < first ? id_ : id_ - first) * n));
  return ids;
}

std::vector<int> Device::getNumaNodesUsedByIPUs() const {
  return std::vector<int>(target_.getNumIPUs(), 0);
}

std::string Device::getAttribute(StringRef attribute) const {
  if (attribute == "board variant") return getTarget().getTargetSystemString().cloneAsString();
  throw poplar_error("[Device::getAttribute] needs a driver; got the IPU Model, asked for '" +
                     attribute.cloneAsString() + "'. Read getTarget() instead.");
}

std::map<std::string, std::string> Device::getAttributes() const { return {}; }

void Device::getDriverVersion(unsigned& major, unsigned& minor, unsigned& point) const {
  major = minor = point = 0;
}

Device Device::createVirtualDevice(unsigned tilesPerIPU) const {
  if (tilesPerIPU == 0 || tilesPerIPU > target_.getTilesPerIPU())
    throw poplar_error("[Device::createVirtualDevice] needs 1 to " +
                       std::to_string(target_.getTilesPerIPU()) + " tiles; got " +
                       std::to_string(tilesPerIPU) + ". Use a number in that range.");
  return Device(target_.withTiles(target_.getNumIPUs(), tilesPerIPU), id_);
}

Device Device::createCPUDevice(unsigned numIPUs) {
  return Device(Target::createCPUTarget(true, numIPUs));
}

Device Device::createSimulatorDevice(const Target& target, const OptionFlags&) {
  return Device(target);
}

std::size_t DeviceManager::getNumDevices() const { return getDevices(TargetType::IPU, 1).size(); }

std::vector<Device> DeviceManager::getDevices(const OptionFlags& opts) const {
  std::vector<Device> all;
  for (unsigned size = 1; size <= kListedIpus; size *= 2)
    for (const auto& device : getDevices(TargetType::IPU, size, opts)) all.push_back(device);
  return all;
}

std::vector<unsigned> DeviceManager::getChildDeviceIds(unsigned parentId,
                                                       unsigned numChildDeviceIpus) const {
  const auto parent = getDevice(parentId).getDriverIDs();
  std::vector<unsigned> ids;
  for (const auto& child : getDevices(TargetType::IPU, numChildDeviceIpus)) {
    const auto ipus = child.getDriverIDs();
    if (ipus.size() < parent.size() && std::ranges::includes(parent, ipus))
      ids.push_back(child.getId());
  }
  if (!ids.empty()) return ids;
  throw poplar_error("[DeviceManager::getChildDeviceIds] needs a device of more than " +
                     std::to_string(numChildDeviceIpus) + " IPUs; got one of " +
                     std::to_string(parent.size()) + ". Use a smaller number of IPUs.");
}

std::vector<Device> DeviceManager::getDevices(TargetType type, unsigned requiredNumIPUs,
                                              const OptionFlags&) const {
  if (requiredNumIPUs == 0 || type == TargetType::CPU) return {};
  if (type == TargetType::IPU_MODEL) return {modelOf(type, requiredNumIPUs, 0)};
  if (!listsModelAsIpus()) return {};
  std::vector<Device> devices;
  const unsigned n = requiredNumIPUs > kListedIpus ? 1 : kListedIpus / requiredNumIPUs;
  const unsigned first = firstIdOf(requiredNumIPUs);
  for (unsigned i = 0; i < n; ++i) devices.push_back(modelOf(type, requiredNumIPUs, first + i));
  return devices;
}

Device DeviceManager::getDevice(unsigned deviceManagerId, const OptionFlags& opts) const {
  const auto devices = getDevices(opts);
  if (deviceManagerId < devices.size()) return devices[deviceManagerId];
  throw poplar_error("[DeviceManager::getDevice] needs an id below " +
                     std::to_string(devices.size()) + "; got " + std::to_string(deviceManagerId) +
                     ". Set IPUJAX_MODEL_AS_IPU=1 to list the IPU Model as IPUs.");
}

Device DeviceManager::acquireAvailableDevice(unsigned numIpus, const OptionFlags& opts) const {
  for (const auto& device : getDevices(TargetType::IPU, numIpus, opts)) {
    if (device.attach()) return device;
  }
  throw poplar_error("[DeviceManager::acquireAvailableDevice] needs a device of " +
                     std::to_string(numIpus) +
                     " IPUs; got none. Set IPUJAX_MODEL_AS_IPU=1 to list the IPU Model as IPUs.");
}

Device DeviceManager::acquireDeviceById(unsigned deviceManagerId, const OptionFlags& opts) const {
  Device device = getDevice(deviceManagerId, opts);
  device.attach();
  return device;
}

}  // namespace poplar
