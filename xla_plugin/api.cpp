#include "buffer.hpp"
#include "client.hpp"
#include "device.hpp"
#include "device_description.hpp"
#include "error.hpp"
#include "event.hpp"
#include "executable.hpp"
#include "host_transfer.hpp"
#include "layouts.hpp"
#include "loaded_executable.hpp"
#include "memory.hpp"
#include "memory_descriptions.hpp"
#include "plugin.hpp"
#include "profiler.hpp"
#include "shardings.hpp"
#include "topology.hpp"
#include "unimplemented.hpp"

namespace ipujax::plugin {
namespace {

PJRT_Api makeApi() {
  PJRT_Api api{};
  api.struct_size = sizeof(PJRT_Api);
  api.extension_start = profiler::extension(
      memory_descriptions::extension(layouts::extension(shardings::extension())));
  api.pjrt_api_version = {.struct_size = sizeof(PJRT_Api_Version),
                          .extension_start = nullptr,
                          .major_version = kPjrtApiMajor,
                          .minor_version = kPjrtApiMinor};
  unimplemented::bind(api);
  error::bind(api);
  event::bind(api);
  plugin_entries::bind(api);
  client::bind(api);
  device_description::bind(api);
  device::bind(api);
  memory::bind(api);
  executable::bind(api);
  loaded_executable::bind(api);
  buffer::bind(api);
  host_transfer::bind(api);
  topology::bind(api);
  return api;
}

}  // namespace
}  // namespace ipujax::plugin

/// jaxlib looks up this symbol in the shared object.
extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = ipujax::plugin::makeApi();
  return &api;
}
