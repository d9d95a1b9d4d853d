#include "topology.hpp"

#include <functional>
#include <string_view>
#include <utility>

#include "compilation.hpp"
#include "executable.hpp"
#include "handle.hpp"

namespace ipujax::plugin {

Topology::Topology(PlatformConfig config)
    : config_(std::move(config)),
      version_(config_.version()),
      attributes_(config_.deviceAttributes()) {
  for (int id = 0; id < config_.numDevices(); ++id) {
    const auto index = config_.indexOf(id);
    descriptions_.push_back(std::make_unique<DeviceDescription>(id, static_cast<int>(index.node),
                                                                config_.ofDevice(index)));
    handles_.push_back(descriptions_.back().get());
  }
}

std::uint64_t Topology::fingerprint() const {
  return std::hash<std::string>{}(version_ + "/" + std::to_string(handles_.size()));
}

namespace {

void create(PJRT_TopologyDescription_Create_Args& args) {
  auto config = PlatformConfig::fromOptions(readNamedValues(args.create_options, args.num_options));
  args.topology = release(std::make_unique<Topology>(std::move(config)));
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

/// Compiles for devices that need not exist; a client, if there is one, is ignored.
void compile(PJRT_Compile_Args& args) {
  const auto& config = object<Topology>(args.topology).config();
  const std::int32_t first[] = {0};
  const std::string_view options(args.compile_options, args.compile_options_size);
  auto program = Program::open(compileFor(config, *args.program, options, first));
  auto assignment = readDeviceAssignment(options, first);
  auto target = config.ofDevices(assignment.device_ids).target();
  args.executable = release(
      std::make_unique<Executable>(std::move(program), std::move(assignment), std::move(target)));
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
  api.PJRT_Compile = guarded<compile>;
}

}  // namespace ipujax::plugin
