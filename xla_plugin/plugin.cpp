#include "plugin.hpp"

#include <memory>
#include <mutex>

#include "compiler_bridge.hpp"
#include "handle.hpp"
#include "named_values.hpp"

namespace ipujax::plugin {
namespace {

void initialize(PJRT_Plugin_Initialize_Args&) {}  // everything is made when it is first used

/// jaxlib keeps the pointer, so attributes are never destroyed.
const NamedValues& attributesOf(const std::vector<std::int64_t>& version) {
  static std::mutex mutex;
  static auto* const known =
      std::make_unique<std::map<std::vector<std::int64_t>, std::unique_ptr<NamedValues>>>()
          .release();
  const std::lock_guard lock(mutex);
  auto& entry = (*known)[version];
  if (!entry) {
    Options options;
    // Without it jaxlib sends programs in the format of some weeks ago.
    if (!version.empty()) options.emplace("stablehlo_current_version", version);
    entry = std::make_unique<NamedValues>(std::move(options));
  }
  return *entry;
}

void attributes(PJRT_Plugin_Attributes_Args& args) {
  const auto& values = attributesOf(bridge::stablehloVersion());
  args.attributes = values.data();
  args.num_attributes = values.size();
}

}  // namespace

void plugin_entries::bind(PJRT_Api& api) {
  api.PJRT_Plugin_Initialize = guarded<initialize>;
  api.PJRT_Plugin_Attributes = guarded<attributes>;
}

}  // namespace ipujax::plugin
