#pragma once
#include <memory>
#include <string>
#include <vector>

#include "device_description.hpp"
#include "platform_config.hpp"

namespace ipujax::plugin {

/// The devices without a client, for ahead-of-time compilation.
/// Owned by jaxlib or by a client.
class Topology final : public PJRT_TopologyDescription {
 public:
  explicit Topology(PlatformConfig config);

  const PlatformConfig& config() const { return config_; }
  const std::string& version() const { return version_; }
  const std::vector<PJRT_DeviceDescription*>& descriptions() const { return handles_; }
  const NamedValues& attributes() const { return attributes_; }
  std::uint64_t fingerprint() const;

 private:
  const PlatformConfig config_;
  const std::string version_;
  std::vector<std::unique_ptr<DeviceDescription>> descriptions_;
  std::vector<PJRT_DeviceDescription*> handles_;
  NamedValues attributes_;
};

namespace topology {
void bind(PJRT_Api& api);
}

}  // namespace ipujax::plugin
