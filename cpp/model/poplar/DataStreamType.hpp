#pragma once

namespace poplar {

/// Direction of a stream, and whether its host end is a FIFO or a remote buffer.
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
