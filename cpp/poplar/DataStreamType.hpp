#pragma once

namespace poplar {

/// The ends that a stream joins.
enum class DataStreamType {
  HostToDeviceFIFO,
  DeviceToHostFIFO,
  HostToDeviceBuffer,
  DeviceToHostBuffer,
};

}  // namespace poplar
