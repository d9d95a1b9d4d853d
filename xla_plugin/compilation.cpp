#include "compilation.hpp"

#include "compile_options.hpp"
#include "compiler_bridge.hpp"
#include "failure.hpp"

namespace ipujax::plugin {

std::string compileFor(const PlatformConfig& machine, const PJRT_Program& program,
                       std::string_view options, std::span<const std::int32_t> default_devices) {
  const std::string_view format(program.format, program.format_size);
  if (format != "mlir") {
    throw PluginError(PJRT_Error_Code_UNIMPLEMENTED,
                      "[ipu compile] needs a program of format \"mlir\"; got \"" +
                          std::string(format) + "\". Pass StableHLO as MLIR.");
  }
  const auto ids = readDeviceAssignment(options, default_devices).device_ids;
  return bridge::compile({program.code, program.code_size}, options,
                         machine.ofDevices(ids).options);
}

}  // namespace ipujax::plugin
