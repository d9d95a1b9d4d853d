#include "unimplemented.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "error.hpp"

namespace ipujax::plugin {
namespace {

/// Why an entry is absent, by the start of its name; entries not named here are bound elsewhere.
struct Reason {
  std::string_view prefix;
  std::string_view text;
};

constexpr Reason kReasons[] = {
    {"AsyncHostToDeviceTransferManager_", "JAX sends whole arrays, never in parts"},
    {"AsyncTrackingEvent_", "it belongs to XLA's own debugging tools"},
    {"Buffer_Bitcast", "JAX does not call it"},
    {"Buffer_CopyRawToHost", "JAX does not call it; ToHostBuffer copies"},
    {"Buffer_DonateWithControlDependency", "JAX does not call it; Execute donates"},
    {"Client_CreateAliasBuffer", "JAX does not call it"},
    {"Client_CreateBuffersForAsyncHostToDevice", "JAX sends whole arrays, never in parts"},
    {"Client_CreateErrorBuffer", "JAX does not call it"},
    {"Client_CreateUninitializedBuffer", "JAX does not call it"},
    {"Client_CreateViewOfDeviceBuffer", "DLPack arrays come through the CPU backend"},
    {"Client_Dma", "an IPU needs no mapping of host memory"},
    {"Client_FulfillAliasBuffer", "JAX does not call it"},
    {"CopyToDeviceStream_", "it belongs to send and receive callbacks, which no program here has"},
    {"Device_CreateAsyncTrackingEvent", "it belongs to XLA's own debugging tools"},
    {"Device_PoisonExecution", "JAX does not call it"},
    {"Executable_GetCompileOptions", "JAX does not call it"},
    {"ExecuteContext_", "it carries FFI state, which no program here has"},
    {"TopologyDescription_", "a topology is made from options and is not stored"},
};

FailurePtr failureOf(std::string_view name) {
  const auto* reason = std::ranges::find_if(
      kReasons, [&](const Reason& known) { return name.starts_with(known.prefix); });
  const std::string text(reason == std::end(kReasons) ? "it was not bound" : reason->text);
  return makeFailure(PJRT_Error_Code_UNIMPLEMENTED, "[ipu plugin] PJRT_" + std::string(name) +
                                                        " is not implemented: " + text + ".");
}

}  // namespace

void unimplemented::bind(PJRT_Api& api) {
#define IPUJAX_VOID_STUB(name, offset, args_size) \
  api.PJRT_##name = [](PJRT_##name##_Args*) noexcept {};
#define IPUJAX_STUB(name, offset, args_size)                          \
  api.PJRT_##name = [](PJRT_##name##_Args*) noexcept -> PJRT_Error* { \
    return makeError(failureOf(#name));                               \
  };
  IPUJAX_PJRT_VOID_ENTRIES(IPUJAX_VOID_STUB)
  IPUJAX_PJRT_ENTRIES(IPUJAX_STUB)
#undef IPUJAX_VOID_STUB
#undef IPUJAX_STUB
}

}  // namespace ipujax::plugin
