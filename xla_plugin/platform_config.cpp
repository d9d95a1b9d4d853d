#include "platform_config.hpp"

#include <stdexcept>
#include <utility>

#include "failure.hpp"

namespace ipujax::plugin {
namespace {

constexpr const char* kTypeNames[] = {"a string", "an integer", "a list of integers", "a float",
                                      "a bool"};

[[noreturn]] void failOption(const std::string& name, const std::string& needs,
                             const std::string& got) {
  failInvalidArgument("[ipu options] " + name + " needs " + needs + "; got " + got +
                      ". Correct the option or the environment variable that sets it.");
}

std::string describe(const OptionValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<float>(&value)) return std::to_string(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return "\"" + *text + "\"";
  return kTypeNames[value.index()];
}

void readInteger(const Options& options, const std::string& name, std::int64_t low,
                 std::int64_t high, std::int64_t& into) {
  const auto found = options.find(name);
  if (found == options.end()) return;
  const auto* value = std::get_if<std::int64_t>(&found->second);
  if (!value || *value < low || *value > high) {
    failOption(name, "an integer from " + std::to_string(low) + " to " + std::to_string(high),
               describe(found->second));
  }
  into = *value;
}

runtime::MachineFigures readMachine(const Options& options) {
  const auto found = options.find("machine");
  if (found == options.end()) return runtime::machineFigures("");
  const auto* name = std::get_if<std::string>(&found->second);
  if (!name) failOption("machine", "a name", describe(found->second));
  try {
    return runtime::machineFigures(*name);
  } catch (const std::invalid_argument& error) {
    failInvalidArgument(error.what());
  }
}

}  // namespace

PlatformConfig PlatformConfig::fromOptions(Options given) {
  PlatformConfig config;
  readInteger(given, "device_count", 1, 4096, config.device_count);
  readInteger(given, "ipus_per_device", 1, 256, config.ipus_per_device);
  config.machine = readMachine(given);
  readInteger(given, "num_tiles", 0, config.machine.tiles_per_ipu, config.num_tiles);
  if (config.num_tiles == 0) config.num_tiles = config.machine.tiles_per_ipu;
  readInteger(given, "streaming_gigabytes", 0, 1 << 20, config.streaming_gigabytes);
  readInteger(given, "num_nodes", 1, 65536, config.num_nodes);
  readInteger(given, "node_id", 0, config.num_nodes - 1, config.node_id);
  config.options = std::move(given);
  config.options.insert_or_assign("device_count", config.device_count);
  config.options.insert_or_assign("ipus_per_device", config.ipus_per_device);
  config.options.insert_or_assign("num_tiles", config.num_tiles);
  config.options.insert_or_assign("machine", config.machine.name);
  return config;
}

std::int64_t PlatformConfig::streamingBytes() const {
  const std::int64_t gigabytes =
      streaming_gigabytes ? streaming_gigabytes : machine.streaming_gigabytes;
  return gigabytes * 1'000'000'000 / machine.ipus_per_machine * ipus_per_device;
}

std::string PlatformConfig::version() const {
  const std::string backend = runtime::backendVersion();
  return "ipujax " IPUJAX_VERSION " " + runtime::backendName() +
         (backend.empty() ? "" : " " + backend) +
         "; ipus_per_device=" + std::to_string(ipus_per_device) +
         " num_tiles=" + std::to_string(num_tiles) + " machine=" + machine.name +
         " bytes_per_tile=" + std::to_string(machine.bytes_per_tile) +
         " clock_hz=" + std::to_string(machine.clock_hz) +
         " streaming_bytes=" + std::to_string(streamingBytes());
}

Options PlatformConfig::deviceAttributes() const {
  // jaxlib aborts on attributes that are neither text nor integers.
  return {
      {"num_ipus", ipus_per_device},
      {"num_tiles", ipus_per_device * num_tiles},
      {"tiles_per_ipu", num_tiles},
      {"bytes_per_tile", static_cast<std::int64_t>(machine.bytes_per_tile)},
      {"executable_bytes_per_tile", static_cast<std::int64_t>(machine.executable_bytes_per_tile)},
      {"clock_hz", static_cast<std::int64_t>(machine.clock_hz)},
      {"is_ipu_model", std::int64_t{machine.is_model}}};
}

}  // namespace ipujax::plugin
