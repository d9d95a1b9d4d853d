#include "device_description.hpp"

#include "handle.hpp"

namespace ipujax::plugin {

DeviceDescription::DeviceDescription(int id, int process_index, const PlatformConfig& config)
    : id_(id),
      process_index_(process_index),
      kind_(config.machine.device_kind),
      debug_string_(
          "IpuDevice(id=" + std::to_string(id) + ", process=" + std::to_string(process_index) +
          ", " + config.machine.device_kind + ", ipus=" + std::to_string(config.ipus_per_device) +
          ", tiles=" + std::to_string(config.num_tiles) + ")"),
      to_string_("IpuDevice(id=" + std::to_string(id) + ")"),
      attributes_(config.deviceAttributes()) {}

namespace {

void id(PJRT_DeviceDescription_Id_Args& args) {
  args.id = object<DeviceDescription>(args.device_description).id();
}

void processIndex(PJRT_DeviceDescription_ProcessIndex_Args& args) {
  args.process_index = object<DeviceDescription>(args.device_description).processIndex();
}

void attributes(PJRT_DeviceDescription_Attributes_Args& args) {
  const auto& values = object<DeviceDescription>(args.device_description).attributes();
  args.attributes = values.data();
  args.num_attributes = values.size();
}

void kind(PJRT_DeviceDescription_Kind_Args& args) {
  const auto& text = object<DeviceDescription>(args.device_description).kind();
  args.device_kind = text.data();
  args.device_kind_size = text.size();
}

void debugString(PJRT_DeviceDescription_DebugString_Args& args) {
  const auto& text = object<DeviceDescription>(args.device_description).debugString();
  args.debug_string = text.data();
  args.debug_string_size = text.size();
}

void toString(PJRT_DeviceDescription_ToString_Args& args) {
  const auto& text = object<DeviceDescription>(args.device_description).toString();
  args.to_string = text.data();
  args.to_string_size = text.size();
}

}  // namespace

void device_description::bind(PJRT_Api& api) {
  api.PJRT_DeviceDescription_Id = guarded<id>;
  api.PJRT_DeviceDescription_ProcessIndex = guarded<processIndex>;
  api.PJRT_DeviceDescription_Attributes = guarded<attributes>;
  api.PJRT_DeviceDescription_Kind = guarded<kind>;
  api.PJRT_DeviceDescription_DebugString = guarded<debugString>;
  api.PJRT_DeviceDescription_ToString = guarded<toString>;
}

}  // namespace ipujax::plugin
