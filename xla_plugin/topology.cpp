#include "topology.hpp"

#include <functional>

#include "handle.hpp"

namespace ipujax::plugin {

Topology::Topology(const PlatformConfig& config)
    : version_(config.version()), attributes_(config.deviceAttributes()) {
  for (std::int64_t node = 0; node < config.num_nodes; ++node) {
    for (std::int64_t i = 0; i < config.device_count; ++i) {
      descriptions_.push_back(
          std::make_unique<DeviceDescription>(static_cast<int>(node * config.device_count + i),
                                              static_cast<int>(node), config.ofDevice(i)));
      handles_.push_back(descriptions_.back().get());
    }
  }
}

std::uint64_t Topology::fingerprint() const {
  return std::hash<std::string>{}(version_ + "/" + std::to_string(handles_.size()));
}

namespace {

void create(PJRT_TopologyDescription_Create_Args& args) {
  const auto config =
      PlatformConfig::fromOptions(readNamedValues(args.create_options, args.num_options));
  args.topology = release(std::make_unique<Topology>(config));
}

void destroy(PJRT_TopologyDescription_Destroy_Args& args) {
  adopt<Topology>(args.topology).reset();
}

void platformName(PJRT_TopologyDescription_PlatformName_Args& args) {
  args.platform_name = kPlatformName.data();
  args.platform_name_size = kPlatformName.size();
}

void platformVersion(PJRT_TopologyDescription_PlatformVersion_Args& args) {
  const auto& version = object<Topology>(args.topology).version();
  args.platform_version = version.data();
  args.platform_version_size = version.size();
}

void getDeviceDescriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args& args) {
  const auto& descriptions = object<Topology>(args.topology).descriptions();
  args.descriptions = descriptions.data();
  args.num_descriptions = descriptions.size();
}

void attributes(PJRT_TopologyDescription_Attributes_Args& args) {
  const auto& values = object<Topology>(args.topology).attributes();
  args.attributes = values.data();
  args.num_attributes = values.size();
}

void fingerprint(PJRT_TopologyDescription_Fingerprint_Args& args) {
  args.fingerprint = object<Topology>(args.topology).fingerprint();
}

}  // namespace

void topology::bind(PJRT_Api& api) {
  api.PJRT_TopologyDescription_Create = guarded<create>;
  api.PJRT_TopologyDescription_Destroy = guarded<destroy>;
  api.PJRT_TopologyDescription_PlatformName = guarded<platformName>;
  api.PJRT_TopologyDescription_PlatformVersion = guarded<platformVersion>;
  api.PJRT_TopologyDescription_GetDeviceDescriptions = guarded<getDeviceDescriptions>;
  api.PJRT_TopologyDescription_Attributes = guarded<attributes>;
  api.PJRT_TopologyDescription_Fingerprint = guarded<fingerprint>;
}

}  // namespace ipujax::plugin
