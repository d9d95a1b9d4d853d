#include "runtime/Backend.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "backends/poplar/Devices.hpp"
#include "backends/poplar/Machines.hpp"
#include "backends/poplar/Program.hpp"
#include "poplar/Target.hpp"
#include "poplar/Version.hpp"
#include "runtime/Faults.hpp"

// Any library with Poplar's API: Graphcore's own, or the SDK folder built from the IPU Model.
namespace ipujax::runtime {

Capabilities capabilities() {
  return {.images = false,
          .hardware = true,
          .wide_types = false,
          .bound_arrays = false,
          .shared_plans = false,  // no SDK promises that a cache may serve several graphs
          .shared_callbacks = false,
          .own_headers = false};
}

std::string backendName() { return "Poplar SDK"; }

std::string backendVersion() { return poplar::versionString(); }

MachineFigures machineFigures(std::string_view name) {
  const auto& machine = poplar_backend::machineByName(name);
  const auto target = poplar::Target::createIPUTarget(1, machine.arch);
  const auto bytes = static_cast<std::int64_t>(target.getBytesPerTile());
  return {.name = machine.name,
          .device_kind = machine.device_kind,
          .tiles_per_ipu = target.getTilesPerIPU(),
          .bytes_per_tile = bytes,
          .executable_bytes_per_tile = bytes,
          .clock_hz = target.getTileClockFrequency(),
          .streaming_gigabytes = machine.streaming_gigabytes,
          .ipus_per_machine = machine.ipus_per_machine,
          .is_model = false};
}

std::shared_ptr<DeviceState> makeDeviceState(const DevicePlace& place) {
  return std::make_shared<poplar_backend::Place>(place);
}

std::shared_ptr<const Program> openProgram(std::span<const std::byte> sealed) {
  return std::make_shared<const poplar_backend::Program>(poplar_backend::Container::open(sealed));
}

// Uses Poplar's own simulated errors: the session that is to fail inserts them into its engine.
void injectFault(std::string_view kind, std::uint64_t at_run, std::string_view program) {
  Faults::shared().inject(kind, at_run, program);
}

void clearFaults() { Faults::shared().clear(); }

void resetDevices(Recovery recovery) {
  if (!Faults::shared().isInUse())
    throw NotSupportedError(
        "[reset_device] needs the IPU Model, or errors that testing.inject made; got devices of a "
        "Poplar SDK. Use gc-reset.");
  Faults::shared().reset(recovery);
}

void releaseThreadMemory() {}

void copyStrided(std::size_t element_bytes, std::span<const CopyDimension> dimensions,
                 const std::byte* from, std::byte* to) {
  if (dimensions.empty()) {
    std::memcpy(to, from, element_bytes);
    return;
  }
  const auto& outer = dimensions.front();
  for (std::int64_t i = 0; i < outer.size; ++i)
    copyStrided(element_bytes, dimensions.subspan(1), from + i * outer.from_stride,
                to + i * outer.to_stride);
}

}  // namespace ipujax::runtime
