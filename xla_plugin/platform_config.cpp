#include "platform_config.hpp"

#include <charconv>
#include <optional>
#include <stdexcept>
#include <string_view>
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

/// Reads integers separated by commas.
std::vector<std::int64_t> readIntegers(const Options& options, const std::string& name,
                                       std::int64_t low, std::int64_t high) {
  const auto found = options.find(name);
  if (found == options.end()) return {};
  const auto* text = std::get_if<std::string>(&found->second);
  if (!text) failOption(name, "text", describe(found->second));
  std::vector<std::int64_t> numbers;
  for (std::string_view rest = *text; !rest.empty();) {
    std::int64_t number = low - 1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    const auto length = static_cast<std::size_t>(end - rest.data());
    const bool more = length < rest.size() && rest[length] == ',' && length + 1 < rest.size();
    if (error != std::errc() || number < low || number > high || (length < rest.size() && !more)) {
      failOption(name,
                 "integers from " + std::to_string(low) + " to " + std::to_string(high) +
                     " with commas between",
                 describe(found->second));
    }
    numbers.push_back(number);
    rest.remove_prefix(length + (more ? 1 : 0));
  }
  return numbers;
}

Connection readConnection(const Options& options) {
  const auto found = options.find("connection");
  if (found == options.end()) return Connection::kAttached;
  const auto* name = std::get_if<std::string>(&found->second);
  if (name && (*name == "always" || *name == "on_demand")) return Connection::kAttached;
  if (name && *name == "pre_compile") return Connection::kPreCompile;
  if (name && *name == "never") return Connection::kNever;
  failOption("connection", "always, on_demand, pre_compile or never", describe(found->second));
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
  config.connection = readConnection(given);
  config.device_ipus = readIntegers(given, "num_ipus", 1, 256);
  config.first_ipus = readIntegers(given, "first_ipus", 0, 1 << 20);
  const auto count = static_cast<std::size_t>(config.device_count);
  for (const auto* each : {&config.device_ipus, &config.first_ipus}) {
    if (each->empty() || each->size() == count) continue;
    failOption(each == &config.device_ipus ? "num_ipus" : "first_ipus",
               "a number for each of " + std::to_string(count) + " devices",
               std::to_string(each->size()));
  }
  std::int64_t num_nodes = 1;
  readInteger(given, "num_nodes", 1, 65536, num_nodes);
  readInteger(given, "node_id", 0, num_nodes - 1, config.node_id);
  const std::vector own(count, config.ipus_per_device);
  config.nodes.assign(static_cast<std::size_t>(num_nodes),
                      config.device_ipus.empty() ? own : config.device_ipus);
  config.options = std::move(given);
  config.options.insert_or_assign("device_count", config.device_count);
  config.options.insert_or_assign("ipus_per_device", config.ipus_per_device);
  config.options.insert_or_assign("num_tiles", config.num_tiles);
  config.options.insert_or_assign("machine", config.machine.name);
  return config;
}

int PlatformConfig::numDevices() const {
  std::size_t count = 0;
  for (const auto& node : nodes) count += node.size();
  return static_cast<int>(count);
}

PlatformConfig::DeviceIndex PlatformConfig::indexOf(int id) const {
  if (id < 0 || id >= numDevices()) {
    failInvalidArgument("[ipu devices] needs device ids below " + std::to_string(numDevices()) +
                        "; got " + std::to_string(id) +
                        ". Use more devices: set JAX_IPU_DEVICE_COUNT, or device_count of the "
                        "topology.");
  }
  std::size_t node = 0;
  auto local = static_cast<std::size_t>(id);
  while (local >= nodes[node].size()) local -= nodes[node++].size();
  return {node, local};
}

PlatformConfig PlatformConfig::ofDevice(DeviceIndex index) const {
  PlatformConfig own = *this;
  own.ipus_per_device = nodes[index.node][index.local];
  if (!slices.empty()) own.slice_index = slices[index.node];
  own.options.insert_or_assign("ipus_per_device", own.ipus_per_device);
  return own;
}

PlatformConfig PlatformConfig::ofDevices(std::span<const int> ids) const {
  std::optional<PlatformConfig> own;
  for (const int id : ids) {
    const auto of = ofDevice(indexOf(id));
    if (!own) own = of;
    if (of.ipus_per_device == own->ipus_per_device) continue;
    failInvalidArgument("[ipu compile] needs devices with equally many IPUs for one program; got " +
                        std::to_string(own->ipus_per_device) + " IPUs in device " +
                        std::to_string(ids.front()) + " and " + std::to_string(of.ipus_per_device) +
                        " in device " + std::to_string(id) + ". Use other devices.");
  }
  return own ? *std::move(own) : *this;
}

std::int64_t PlatformConfig::firstIpuOf(std::int64_t local_id) const {
  if (!first_ipus.empty()) return first_ipus[static_cast<std::size_t>(local_id)];
  if (device_ipus.empty()) return local_id * ipus_per_device;
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < local_id; ++i) first += device_ipus[static_cast<std::size_t>(i)];
  return first;
}

std::int64_t PlatformConfig::streamingBytes() const {
  const std::int64_t gigabytes =
      streaming_gigabytes ? streaming_gigabytes : machine.streaming_gigabytes;
  return gigabytes * 1'000'000'000 / machine.ipus_per_machine * ipus_per_device;
}

std::string PlatformConfig::version() const {
  const std::string backend = runtime::backendVersion();
  return "ipujax " IPUJAX_VERSION " " + runtime::backendName() +
         (backend.empty() ? "" : " " + backend) + "; " + target();
}

std::string PlatformConfig::target() const {
  return "ipus_per_device=" + std::to_string(ipus_per_device) +
         " num_tiles=" + std::to_string(num_tiles) + " machine=" + machine.name +
         " bytes_per_tile=" + std::to_string(machine.bytes_per_tile) +
         " clock_hz=" + std::to_string(machine.clock_hz) +
         " streaming_bytes=" + std::to_string(streamingBytes());
}

Options PlatformConfig::deviceAttributes() const {
  // jaxlib aborts on attributes that are neither text nor integers.
  Options attributes{
      {"num_ipus", ipus_per_device},
      {"num_tiles", ipus_per_device * num_tiles},
      {"tiles_per_ipu", num_tiles},
      {"bytes_per_tile", static_cast<std::int64_t>(machine.bytes_per_tile)},
      {"executable_bytes_per_tile", static_cast<std::int64_t>(machine.executable_bytes_per_tile)},
      {"clock_hz", static_cast<std::int64_t>(machine.clock_hz)},
      {"is_ipu_model", std::int64_t{machine.is_model}}};
  if (slice_index >= 0) attributes["slice_index"] = slice_index;
  return attributes;
}

}  // namespace ipujax::plugin
