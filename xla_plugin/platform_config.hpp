#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "named_values.hpp"
#include "runtime/Backend.hpp"

namespace ipujax::plugin {

/// Where programs run: on attached IPUs, nowhere but with zeros as results, or nowhere.
enum class Connection { kAttached, kPreCompile, kNever };

/// What the client's create options say about the machine. Checked: a wrong value is an error with
/// the option's name. Options without meaning here are kept for the compiler.
struct PlatformConfig {
  std::int64_t device_count = 4;          ///< one IPU-M2000: four IPUs
  std::int64_t ipus_per_device = 1;       ///< of every device, or of the first
  std::vector<std::int64_t> device_ipus;  ///< of each device, where they differ
  std::vector<std::int64_t> first_ipus;   ///< of each device; empty: one after the other
  Connection connection = Connection::kAttached;
  runtime::MachineFigures machine;
  std::int64_t num_tiles = 0;                    ///< of one IPU
  std::int64_t streaming_gigabytes = 0;          ///< of one machine; 0: its default
  std::int64_t node_id = 0;                      ///< this process, set by jax.distributed
  std::vector<std::vector<std::int64_t>> nodes;  ///< IPUs of each device of each process
  std::vector<std::int64_t> slices;  ///< host of each process, from 0; empty: one process
  std::int64_t slice_index = -1;     ///< host of a device; -1: there is one process
  Options options;                   ///< as given, plus the values above by name

  static PlatformConfig fromOptions(Options options);
  std::int64_t numNodes() const { return static_cast<std::int64_t>(nodes.size()); }
  /// The process of a device and its number there. Throws for an unknown id.
  struct DeviceIndex {
    std::size_t node;
    std::size_t local;
  };
  DeviceIndex indexOf(int id) const;
  int numDevices() const;  ///< of all processes
  /// The same with the number of IPUs of one device.
  PlatformConfig ofDevice(DeviceIndex index) const;
  /// The same for a program on these devices of any process. Throws for unknown ids, and if the
  /// devices differ in their number of IPUs.
  PlatformConfig ofDevices(std::span<const int> ids) const;
  std::int64_t firstIpuOf(std::int64_t local_id) const;

  std::int64_t deviceBytes() const {
    return ipus_per_device * num_tiles * static_cast<std::int64_t>(machine.bytes_per_tile);
  }
  /// A device's share of the streaming memory of its machines.
  std::int64_t streamingBytes() const;
  /// Names what the compiled code depends on; part of the key of JAX's compilation cache.
  std::string version() const;
  /// The properties of devices that programs depend on: they run on devices with the same text.
  std::string target() const;
  /// The attributes of every device.
  Options deviceAttributes() const;
};

inline constexpr std::string_view kPlatformName = "ipu";

}  // namespace ipujax::plugin
