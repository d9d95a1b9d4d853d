#pragma once
#include "poplar/Target.hpp"

namespace poplar {

/// A device a program can be loaded on. Modelled devices are always free: attach never fails.
class Device {
 public:
  Device() = default;
  explicit Device(Target target, unsigned id = 0) : target_(std::move(target)), id_(id) {}

  unsigned getId() const { return id_; }
  const Target& getTarget() const { return target_; }
  bool attach() const { return true; }
  void detach() const {}
  bool supportsRemoteBuffers() const { return true; }

  static Device createCPUDevice();

 private:
  Target target_;
  unsigned id_ = 0;
};

}  // namespace poplar
