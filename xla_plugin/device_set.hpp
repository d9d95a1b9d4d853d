#pragma once
#include <memory>
#include <vector>

#include "device.hpp"

namespace ipujax::plugin {

/// The devices of a client. Shared, so that who waits for them needs no lock that would keep
/// clients from being made or destroyed meanwhile.
struct DeviceSet {
  std::vector<std::unique_ptr<Device>> all;
  std::vector<Device*> local;
  const std::shared_ptr<ClientViews> views = std::make_shared<ClientViews>();

  /// Where a program with callbacks, or one that prints, is queued: waits until the queue has run.
  void drainEffects();
  void close();           ///< ends the devices' threads
  bool endInterrupted();  ///< as Device::endInterrupted, on all

  /// Those of every client there is, the newest client's last.
  static std::vector<std::shared_ptr<DeviceSet>> ofAllClients();
  static void add(std::shared_ptr<DeviceSet> devices);
  static void remove(const std::shared_ptr<DeviceSet>& devices);
};

}  // namespace ipujax::plugin
