#pragma once
#include <string>

#include "named_values.hpp"
#include "platform_config.hpp"

namespace ipujax::plugin {

/// What a device is, apart from any client: part of a topology or of a device.
class DeviceDescription final : public PJRT_DeviceDescription {
 public:
  DeviceDescription(int id, int process_index, const PlatformConfig& config);

  int id() const { return id_; }
  int processIndex() const { return process_index_; }
  const std::string& kind() const { return kind_; }
  const std::string& debugString() const { return debug_string_; }
  const std::string& toString() const { return to_string_; }
  const NamedValues& attributes() const { return attributes_; }

 private:
  int id_;
  int process_index_;
  std::string kind_;
  std::string debug_string_;
  std::string to_string_;
  NamedValues attributes_;
};

namespace device_description {
void bind(PJRT_Api& api);
}

}  // namespace ipujax::plugin
