#pragma once
#include <cstdint>
#include <string>

#include "engine/graph/View.hpp"
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

/// Memory of the host ("streaming memory") that programs copy to and from by program::Copy:
/// `repeats` entries of `numElements`.
class RemoteBuffer {
 public:
  RemoteBuffer() = default;
  RemoteBuffer(std::string handle, Type type, std::size_t elements, std::size_t repeats,
               ipujax::engine::ViewPtr view, bool rearrange_on_host, bool optimise_memory)
      : handle_(std::move(handle)),
        type_(type),
        elements_(elements),
        repeats_(repeats),
        view_(std::move(view)),
        rearrange_on_host_(rearrange_on_host),
        optimise_memory_(optimise_memory) {}
  const std::string& handle() const { return handle_; }
  std::size_t numElements() const { return elements_; }
  std::size_t getRepeats() const { return repeats_; }
  Type elementType() const { return type_; }
  bool isRearrangeOnHost() const { return rearrange_on_host_; }
  bool isOptimisedForMemory() const { return optimise_memory_; }
  bool operator==(const RemoteBuffer& other) const {
    return view_->variable == other.view_->variable;
  }
  /// For the library: [repeats, elements].
  operator const ipujax::engine::ViewPtr&() const { return view_; }  // NOLINT: see Emit.hpp

 private:
  std::string handle_;
  Type type_;
  std::size_t elements_ = 0;
  std::size_t repeats_ = 1;
  ipujax::engine::ViewPtr view_;
  bool rearrange_on_host_ = false;
  bool optimise_memory_ = false;
};

}  // namespace poplar
