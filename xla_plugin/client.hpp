#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device_set.hpp"
#include "hosts/Channel.hpp"
#include "platform_config.hpp"
#include "topology.hpp"

namespace ipujax::plugin {

/// All devices of this process, and what it knows of those of other processes. Owned by jaxlib.
/// Usually there is one, but a new one may be made before the last array of an old one is gone.
class Client final : public PJRT_Client {
 public:
  /// `channel` is null if there are no other processes, or no way to reach them.
  Client(PlatformConfig config, std::shared_ptr<hosts::Channel> channel);
  ~Client();

  const PlatformConfig& config() const { return config_; }
  const std::string& version() const { return topology_.version(); }
  Topology& topology() { return topology_; }
  const std::vector<PJRT_Device*>& devices() const { return handles_; }
  const std::vector<PJRT_Device*>& addressableDevices() const { return addressable_; }
  const std::vector<PJRT_Memory*>& addressableMemories() const { return memories_; }
  /// To the other processes; throws if there is no way to reach them.
  const std::shared_ptr<hosts::Channel>& channel() const;
  Device& deviceById(int id) const;       ///< throws for an unknown id
  Device& deviceByLocalId(int id) const;  ///< throws for an unknown id

  /// Held while a call takes its arguments and gets its places in the queues: all devices see
  /// calls in the same order, and an argument cannot be donated between being taken and queued.
  std::mutex& submitMutex() { return submit_mutex_; }
  std::uint64_t nextLaunch() { return ++launches_; }  ///< under the submit mutex

 private:
  const PlatformConfig config_;
  Topology topology_;
  const std::shared_ptr<hosts::Channel> channel_;
  const std::shared_ptr<DeviceSet> devices_;
  std::vector<PJRT_Device*> handles_;
  std::vector<PJRT_Device*> addressable_;
  std::vector<PJRT_Memory*> memories_;
  std::mutex submit_mutex_;
  std::uint64_t launches_ = 0;
};

namespace client {
void bind(PJRT_Api& api);
}

}  // namespace ipujax::plugin
