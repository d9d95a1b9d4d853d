#pragma once

namespace poplar {

/// The ends that a stream joins.
enum class DataStreamType {
  HostToDeviceFIFO,
  DeviceToHostFIFO,
  HostToDeviceBuffer,
  DeviceToHostBuffer,
};

constexpr bool isDeviceToHost(DataStreamType t) {
  return t == DataStreamType::DeviceToHostFIFO || t == DataStreamType::DeviceToHostBuffer;
}
constexpr bool isHostToDevice(DataStreamType t) { return !isDeviceToHost(t); }
constexpr bool isRemoteBuffer(DataStreamType t) {
  return t == DataStreamType::DeviceToHostBuffer || t == DataStreamType::HostToDeviceBuffer;
}

}  // namespace poplar
