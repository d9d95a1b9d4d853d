#include "runtime/Backend.hpp"

#include <vector>

#include "backends/model/Program.hpp"
#include "engine/Machine.hpp"
#include "engine/Workspace.hpp"
#include "engine/kernels/move/Copy.hpp"
#include "runtime/Faults.hpp"

// The IPU Model.
namespace ipujax::runtime {

Capabilities capabilities() {
  return {.images = true,
          .hardware = false,
          .wide_types = true,
          .bound_arrays = true,
          .shared_plans = true,
          .shared_callbacks = true,
          .own_headers = true};
}

std::string backendName() { return "IPU Model"; }

std::string backendVersion() { return {}; }

MachineFigures machineFigures(std::string_view name) {
  const auto& m = name.empty() ? engine::machines().front() : engine::machineByName(name);
  return {.name = m.name,
          .device_kind = m.device_kind,
          .tiles_per_ipu = m.tiles_per_ipu,
          .bytes_per_tile = static_cast<std::int64_t>(m.bytes_per_tile),
          .executable_bytes_per_tile = static_cast<std::int64_t>(m.executable_bytes_per_tile),
          .clock_hz = m.clock_hz,
          .streaming_gigabytes = m.streaming_gigabytes,
          .ipus_per_machine = m.ipus_per_machine,
          .is_model = true};
}

std::shared_ptr<DeviceState> makeDeviceState(const DevicePlace&) {
  return std::make_shared<model::Scratch>();
}

std::shared_ptr<const Program> openProgram(std::span<const std::byte> sealed) {
  return std::make_shared<const model::Program>(engine::Image::deserialise(sealed));
}

void injectFault(std::string_view kind, std::uint64_t at_run, std::string_view program) {
  Faults::shared().inject(kind, at_run, program);
}

void clearFaults() { Faults::shared().clear(); }

void resetDevices(Recovery recovery) { Faults::shared().reset(recovery); }

void releaseThreadMemory() { engine::Workspace::release(); }

void copyStrided(std::size_t element_bytes, std::span<const CopyDimension> dimensions,
                 const std::byte* from, std::byte* to) {
  std::vector<engine::CopyDim> walk;
  walk.reserve(dimensions.size());
  for (const auto& d : dimensions) walk.push_back({d.size, d.from_stride, d.to_stride});
  engine::StridedCopy(element_bytes, walk).run(from, to);
}

}  // namespace ipujax::runtime
