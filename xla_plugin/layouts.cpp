#include "layouts.hpp"

#include <map>
#include <mutex>
#include <numeric>
#include <string>

#include "buffer.hpp"
#include "executable.hpp"
#include "handle.hpp"

namespace ipujax::plugin {
namespace {

struct MemoryLayout final : PJRT_Layouts_MemoryLayout {
  explicit MemoryLayout(const std::vector<std::int64_t>& minor_to_major) {
    for (const auto axis : minor_to_major) text += (text.empty() ? "" : ",") + std::to_string(axis);
    text = "{" + text + "}";
  }

  std::string text;
};

/// Layouts are shared and never destroyed.
void destroy(PJRT_Layouts_MemoryLayout_Destroy_Args& /*args*/) {}

void serialize(PJRT_Layouts_MemoryLayout_Serialize_Args& args) {
  const auto& text = object<MemoryLayout>(args.layout).text;
  args.serialized_bytes = text.data();
  args.serialized_bytes_size = text.size();
  args.serialized_layout = nullptr;
  args.serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout*) {};
}

void clientDefaultLayout(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args& args) {
  args.layout = layouts::ofRank(args.num_dims);
}

void topologyDefaultLayout(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args& args) {
  args.layout = layouts::ofRank(args.num_dims);
}

void bufferLayout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args& args) {
  args.layout = layouts::of(object<Buffer>(args.buffer).shape().minor_to_major);
}

void outputLayouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args& args) {
  auto& known = object<Executable>(args.executable).output_layouts;
  args.num_outputs = known.size();
  args.layouts = known.data();
}

void parameterLayouts(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args& args) {
  auto& known = object<Executable>(args.executable).parameter_layouts;
  args.num_parameters = known.size();
  args.layouts = known.data();
}

}  // namespace

PJRT_Layouts_MemoryLayout* layouts::of(const std::vector<std::int64_t>& minor_to_major) {
  static std::mutex mutex;
  static std::map<std::vector<std::int64_t>, MemoryLayout> known;
  const std::lock_guard lock(mutex);
  return &known.try_emplace(minor_to_major, minor_to_major).first->second;
}

PJRT_Layouts_MemoryLayout* layouts::ofRank(std::size_t rank) {
  std::vector<std::int64_t> order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  return of(order);
}

PJRT_Extension_Base* layouts::extension(PJRT_Extension_Base* next) {
  static PJRT_Layouts_Extension instance{.base = {.struct_size = sizeof(PJRT_Layouts_Extension),
                                                  .type = PJRT_Extension_Type_Layouts,
                                                  .next = nullptr},
                                         .destroy = guarded<destroy>,
                                         .serialize = guarded<serialize>,
                                         .client_default_layout = guarded<clientDefaultLayout>,
                                         .buffer_layout = guarded<bufferLayout>,
                                         .topology_default_layout = guarded<topologyDefaultLayout>,
                                         .output_layouts = guarded<outputLayouts>,
                                         .parameter_layouts = guarded<parameterLayouts>};
  instance.base.next = next;
  return &instance.base;
}

}  // namespace ipujax::plugin
