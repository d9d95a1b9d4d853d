#pragma once
#include <memory>
#include <vector>

#include "device.hpp"

namespace ipujax::plugin {

/// The devices of a client. Shared, so that a thread can wait for them without a lock that would
/// keep clients from being made or destroyed meanwhile.
struct DeviceSet {
  std::vector<std::unique_ptr<Device>> all;
  std::vector<Device*> local;
  const std::shared_ptr<ClientViews> views = std::make_shared<ClientViews>();

  /// Waits for all queues that contain a program with callbacks or one that prints.
  void drainEffects();
  void close();           ///< ends the devices' threads
  bool endInterrupted();  ///< Device::endInterrupted of all devices

  /// The device sets of all clients, the newest client's last.
  static std::vector<std::shared_ptr<DeviceSet>> ofAllClients();
  static void add(std::shared_ptr<DeviceSet> devices);
  static void remove(const std::shared_ptr<DeviceSet>& devices);
};

}  // namespace ipujax::plugin
