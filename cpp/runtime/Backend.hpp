#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/DeviceError.hpp"
#include "runtime/Program.hpp"

/// What runs programs: one of the folders of cpp/backends, chosen when the extension is built.
namespace ipujax::runtime {

/// The figures of one kind of IPU that devices report.
struct MachineFigures {
  std::string name;         ///< what users write: "gc200"
  std::string device_kind;  ///< what JAX shows of a device
  std::int64_t tiles_per_ipu = 0;
  std::int64_t bytes_per_tile = 0;
  std::int64_t executable_bytes_per_tile = 0;  ///< of these, where code can be
  double clock_hz = 0;
  std::int64_t streaming_gigabytes = 0;  ///< DRAM of one machine, for remote buffers
  std::int64_t ipus_per_machine = 1;
  bool is_model = true;  ///< no hardware runs it
};

/// A device: IPUs [first_ipu, first_ipu + num_ipus) of this process.
struct DevicePlace {
  std::int64_t first_ipu = 0;
  std::int64_t num_ipus = 1;
  std::int64_t tiles_per_ipu = 0;
};

/// What differs between backends, by the names under which the compiler asks.
struct Capabilities {
  bool images;            ///< programs become images, whose time and memory are known before a run
  bool hardware;          ///< programs can run on IPUs
  bool wide_types;        ///< 64-bit numbers
  bool bound_arrays;      ///< arguments and results are used where the caller has them
  bool shared_plans;      ///< one planning cache serves several graphs
  bool shared_callbacks;  ///< one handle serves several calls of a function on the host
  bool own_headers;       ///< custom ops are compiled against headers beside the extension
};
Capabilities capabilities();
/// For people: "IPU Model" or "Poplar SDK".
std::string backendName();
/// Of the library that compiles and runs programs; empty where that is ipujax itself.
std::string backendVersion();
/// Throws std::invalid_argument for a name that is not known; the empty name is the default's.
MachineFigures machineFigures(std::string_view name);
std::shared_ptr<DeviceState> makeDeviceState(const DevicePlace& place);
/// From sealed bytes; reads nothing out of bounds. Throws ExecutableError.
std::shared_ptr<const Program> openProgram(std::span<const std::byte> sealed);
/// Devices fail as hardware does, for tests of what recovers: at the `at_run`th run from now (the
/// first is 1) of programs of this name, or of any if it is empty, and then until a reset that is
/// enough. Kinds are link_error, host_link_timeout, ecc, exchange_parity and power. Throws
/// std::invalid_argument for another kind.
void injectFault(std::string_view kind, std::uint64_t at_run, std::string_view program);
void clearFaults();
/// Resets all devices of this process. Throws NotSupportedError where only tools of the SDK can:
/// on hardware that no test told to fail.
void resetDevices(Recovery recovery);
/// A device's thread has waited for a while: gives back what it keeps for kernels.
void releaseThreadMemory();

/// One dimension of a walk over bytes.
struct CopyDimension {
  std::int64_t size;
  std::int64_t from_stride;  ///< bytes
  std::int64_t to_stride;
};
/// Copies elements of 1, 2, 4 or 8 bytes, outermost dimension first.
void copyStrided(std::size_t element_bytes, std::span<const CopyDimension> dimensions,
                 const std::byte* from, std::byte* to);

}  // namespace ipujax::runtime
