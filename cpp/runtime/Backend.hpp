#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/DeviceError.hpp"
#include "runtime/Program.hpp"

/// The backend runs programs. It is one of the folders of cpp/backends, chosen at build time.
namespace ipujax::runtime {

/// Figures that devices report for one kind of IPU.
struct MachineFigures {
  std::string name;         ///< what users write: "gc200"
  std::string device_kind;  ///< the kind of device that JAX shows
  std::int64_t tiles_per_ipu = 0;
  std::int64_t bytes_per_tile = 0;
  std::int64_t executable_bytes_per_tile = 0;  ///< the part that can hold code
  double clock_hz = 0;
  std::int64_t streaming_gigabytes = 0;  ///< DRAM of one machine, for remote buffers
  std::int64_t ipus_per_machine = 1;
  bool is_model = true;  ///< simulated, without hardware
};

/// A device: IPUs [first_ipu, first_ipu + num_ipus) of this process.
struct DevicePlace {
  std::int64_t first_ipu = 0;
  std::int64_t num_ipus = 1;
  std::int64_t tiles_per_ipu = 0;
};

/// The differences between backends, by the names that the compiler uses.
struct Capabilities {
  bool images;            ///< programs become images, whose time and memory are known before a run
  bool hardware;          ///< programs can run on IPUs
  bool wide_types;        ///< 64-bit numbers
  bool bound_arrays;      ///< programs use the caller's arrays in place
  bool shared_plans;      ///< one planning cache serves several graphs
  bool shared_callbacks;  ///< one handle serves several calls of a function on the host
  bool own_headers;       ///< custom ops are compiled against headers next to the extension
};
Capabilities capabilities();
/// Human-readable: "IPU Model" or "Poplar SDK".
std::string backendName();
/// Version of the library that compiles and runs programs; empty if that is ipujax itself.
std::string backendVersion();
/// Throws std::invalid_argument for an unknown name; an empty name means the default machine.
MachineFigures machineFigures(std::string_view name);
std::shared_ptr<DeviceState> makeDeviceState(const DevicePlace& place);
/// Opens sealed bytes and never reads out of bounds. Throws ExecutableError.
std::shared_ptr<const Program> openProgram(std::span<const std::byte> sealed);
/// Makes devices fail as hardware does, to test recovery: at the `at_run`th run from now (the next
/// is 1) of programs with this name, or of any program if it is empty, and in all later runs until
/// a sufficient reset. Kinds are link_error, host_link_timeout, ecc, exchange_parity and power.
/// Throws std::invalid_argument for another kind.
void injectFault(std::string_view kind, std::uint64_t at_run, std::string_view program);
void clearFaults();
/// Resets all devices of this process. Throws NotSupportedError on hardware without injected
/// faults, which only the SDK's tools can reset.
void resetDevices(Recovery recovery);
/// Called when a device's thread has been idle for a while: frees the memory it keeps for kernels.
void releaseThreadMemory();

/// One dimension of a strided copy.
struct CopyDimension {
  std::int64_t size;
  std::int64_t from_stride;  ///< bytes
  std::int64_t to_stride;
};
/// Copies elements of 1, 2, 4 or 8 bytes, outermost dimension first.
void copyStrided(std::size_t element_bytes, std::span<const CopyDimension> dimensions,
                 const std::byte* from, std::byte* to);

}  // namespace ipujax::runtime
