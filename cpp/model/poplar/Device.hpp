#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "poplar/OptionFlags.hpp"
#include "poplar/Target.hpp"

namespace poplar {

/// A device a program can be loaded on. Modelled devices are always free: attach never fails.
class Device {
 public:
  Device() = default;
  explicit Device(Target target, unsigned id = 0) : target_(std::move(target)), id_(id) {}
  unsigned getId() const { return id_; }
  const Target& getTarget() const { return target_; }
  bool attach() const {
    attached_ = true;
    return true;
  }
  void detach() const { attached_ = false; }
  bool isAttached() const { return attached_; }
  void reset() const {}
  bool supportsRemoteBuffers() const { return true; }
  bool hasGateway() const { return true; }
  /// One driver id for each IPU of the device.
  std::vector<int> getDriverIDs() const;
  /// NUMA node of each IPU: always 0, as the model uses only the first node.
  std::vector<int> getNumaTopology() const { return getNumaNodesUsedByIPUs(); }
  std::vector<int> getNumaNodesUsedForIPUs() const { return getNumaNodesUsedByIPUs(); }
  std::vector<int> getNumaNodesUsedByIPUs() const;
  /// A driver's attribute of an IPU. Throws poplar_error, except for the model's "board variant".
  std::string getAttribute(StringRef attribute) const;
  std::map<std::string, std::string> getAttributes() const;
  /// 0.0.0: the model has no driver.
  void getDriverVersion(unsigned& major, unsigned& minor, unsigned& point) const;
  /// The same device with `tilesPerIPU` tiles on each IPU.
  Device createVirtualDevice(unsigned tilesPerIPU) const;
  /// A device of IPUs with one tile each.
  static Device createCPUDevice(unsigned numIPUs = 1);
  /// The model takes the simulator's place; `options` have no effect.
  static Device createSimulatorDevice(const Target& target, const OptionFlags& options = {});

 private:
  Target target_;
  unsigned id_ = 0;
  mutable bool attached_ = false;  ///< attach is const in the SDK
};

}  // namespace poplar
