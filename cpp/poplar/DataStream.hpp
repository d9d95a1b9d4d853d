#pragma once
#include <cstdint>
#include <string>

#include "poplar/Type.hpp"

namespace poplar {

enum class DataStreamType { HostToDeviceFIFO, DeviceToHostFIFO };
enum class ReplicatedStreamMode { REPLICATE, BROADCAST };

/// A channel between host and device, used in program::Copy.
class DataStream {
 public:
  DataStream() = default;
  DataStream(std::uint32_t id, std::string handle, Type type, std::size_t elements,
             DataStreamType direction)
      : id_(id),
        handle_(std::move(handle)),
        type_(type),
        elements_(elements),
        direction_(direction) {}
  const std::string& handle() const { return handle_; }
  std::size_t numElements() const { return elements_; }
  Type elementType() const { return type_; }
  DataStreamType type() const { return direction_; }
  std::uint32_t id() const { return id_; }

 private:
  std::uint32_t id_ = 0;
  std::string handle_;
  Type type_;
  std::size_t elements_ = 0;
  DataStreamType direction_ = DataStreamType::HostToDeviceFIFO;
};

}  // namespace poplar
