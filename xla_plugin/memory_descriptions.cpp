#include "memory_descriptions.hpp"

#include <array>
#include <cstring>

#include "handle.hpp"
#include "support/MemoryKind.hpp"

namespace ipujax::plugin {
namespace {

struct MemoryDescription final : PJRT_MemoryDescription {
  explicit MemoryDescription(runtime::MemoryKind of) : kind(of) {}
  runtime::MemoryKind kind;
};

const MemoryDescription kDevice(runtime::MemoryKind::kDevice);
const MemoryDescription kPinnedHost(runtime::MemoryKind::kPinnedHost);
/// The same for every device: all have one memory of each kind, the default first.
const std::array<const PJRT_MemoryDescription*, runtime::kMemoryKindNames.size()> kAll{
    &kDevice, &kPinnedHost};

void ofDevice(PJRT_DeviceDescription_MemoryDescriptions_Args& args) {
  args.memory_descriptions = kAll.data();
  args.num_memory_descriptions = kAll.size();
  args.default_memory_index = 0;
}

void kind(PJRT_MemoryDescription_Kind_Args& args) {
  const auto of = object<MemoryDescription>(args.memory_description).kind;
  args.kind = runtime::nameOf(of);
  args.kind_size = std::strlen(args.kind);
  args.kind_id = static_cast<int>(of);
}

}  // namespace

PJRT_Extension_Base* memory_descriptions::extension(PJRT_Extension_Base* next) {
  static PJRT_MemoryDescriptions_Extension instance{
      .base = {.struct_size = sizeof(PJRT_MemoryDescriptions_Extension),
               .type = PJRT_Extension_Type_MemoryDescriptions,
               .next = nullptr},
      .memory_descriptions = guarded<ofDevice>,
      .kind = guarded<kind>};
  instance.base.next = next;
  return &instance.base;
}

}  // namespace ipujax::plugin
