#include "backends/poplar/Devices.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "poplar/DeviceManager.hpp"
#include "poplar/exceptions.hpp"

namespace ipujax::poplar_backend {
namespace {

/// The devices that this process has attached. Poplar's devices of 1, 2, 4 ... IPUs overlap, and an
/// IPU can be attached through only one of them.
class Attached {
 public:
  bool enter(poplar::Engine& engine, std::uint64_t id, const IpuRange& range,
             std::int64_t tiles_per_ipu) {
    const std::lock_guard lock(mutex_);
    std::erase_if(devices_, [&](const auto& entry) {
      if (entry.first == range || !entry.first.overlaps(range)) return false;
      entry.second.device.detach();
      return true;
    });
    auto found = devices_.find(range);
    if (found == devices_.end())
      found = devices_.emplace(range, Entry{attach(range, tiles_per_ipu)}).first;
    if (found->second.loaded == id) return false;
    found->second.loaded = 0;
    engine.load(found->second.device);
    found->second.loaded = id;
    return true;
  }

 private:
  struct Entry {
    poplar::Device device;
    std::uint64_t loaded = 0;  // 0: nothing
  };

  static poplar::Device attach(const IpuRange& range, std::int64_t tiles_per_ipu) {
    const auto listed = poplar::DeviceManager::createDeviceManager().getDevices(
        poplar::TargetType::IPU, static_cast<unsigned>(range.num));
    const auto index = static_cast<std::size_t>(range.first / range.num);
    if (index >= listed.size()) {
      throw poplar::poplar_error(
          "[devices] needs " + std::to_string(range.num) + " IPUs from number " +
          std::to_string(range.first) + " on; got " + std::to_string(listed.size()) +
          " devices of that size. Use fewer devices (JAX_IPU_DEVICE_COUNT); set "
          "IPUJAX_MODEL_AS_IPU=1 where the SDK is the IPU Model.");
    }
    poplar::Device device = listed[index];
    if (!device.attach())
      throw poplar::poplar_error("[devices] needs IPUs that are free; got device " +
                                 std::to_string(device.getId()) +
                                 ", which another process holds. Wait for it, or use others.");
    if (tiles_per_ipu == device.getTarget().getTilesPerIPU()) return device;
    return device.createVirtualDevice(static_cast<unsigned>(tiles_per_ipu));
  }

  std::mutex mutex_;
  std::map<IpuRange, Entry> devices_;
};

/// Lives as long as the process: programs may end after static objects are gone.
Attached& attached() {
  static auto* const instance = std::make_unique<Attached>().release();
  return *instance;
}

}  // namespace

IpuRange rangeOf(const runtime::DeviceStates& devices, std::int64_t ipus_per_replica) {
  std::vector<std::int64_t> firsts;
  for (const auto& device : devices)
    firsts.push_back(static_cast<const Place&>(*device).place.first_ipu);
  std::ranges::sort(firsts);
  const auto num = static_cast<std::int64_t>(devices.size()) * ipus_per_replica;
  const IpuRange range{firsts.front(), num};
  bool contiguous = range.first % num == 0;
  for (std::size_t i = 0; i < firsts.size(); ++i)
    contiguous &= firsts[i] == range.first + static_cast<std::int64_t>(i) * ipus_per_replica;
  if (!contiguous) {
    throw runtime::NotSupportedError(
        "[ipu load] needs devices whose IPUs follow one another, from a multiple of their number "
        "(" +
        std::to_string(num) + ") on; got IPU " + std::to_string(firsts.front()) + " to " +
        std::to_string(firsts.back()) + ". Use other devices, or the IPU Model's own build.");
  }
  return range;
}

bool enter(poplar::Engine& engine, std::uint64_t id, const IpuRange& range,
           std::int64_t tiles_per_ipu) {
  return attached().enter(engine, id, range, tiles_per_ipu);
}

}  // namespace ipujax::poplar_backend
