#include "device_set.hpp"

#include <mutex>
#include <utility>

namespace ipujax::plugin {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<DeviceSet>> sets;
};

/// Lives as long as the process: jaxlib may destroy its client after static objects are gone.
Registry& registry() {
  static auto* const instance = std::make_unique<Registry>().release();
  return *instance;
}

}  // namespace

void DeviceSet::drainEffects() {
  for (auto* device : local) {
    if (device->runtime()->queued_with_effects.load() > 0) device->queue().drain();
  }
}

void DeviceSet::close() {
  for (auto* device : local) device->close();
}

bool DeviceSet::endInterrupted() {
  bool is_left = false;
  for (auto* device : local) is_left |= device->endInterrupted();
  return is_left;
}

std::vector<std::shared_ptr<DeviceSet>> DeviceSet::ofAllClients() {
  const std::lock_guard lock(registry().mutex);
  return registry().sets;
}

void DeviceSet::add(std::shared_ptr<DeviceSet> devices) {
  const std::lock_guard lock(registry().mutex);
  registry().sets.push_back(std::move(devices));
}

void DeviceSet::remove(const std::shared_ptr<DeviceSet>& devices) {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().sets, devices);
}

}  // namespace ipujax::plugin
