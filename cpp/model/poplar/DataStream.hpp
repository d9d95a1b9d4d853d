#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "poplar/DataStreamType.hpp"
#include "poplar/ReplicatedStreamMode.hpp"
#include "poplar/Type.hpp"

namespace ipujax::engine {
struct View;
}

namespace poplar {

/// A channel between host and device, used in program::Copy.
class DataStream {
 public:
  DataStream() = default;
  DataStream(std::uint32_t id, std::string handle, Type type, std::size_t elements,
             DataStreamType direction, ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE,
             unsigned replicas = 1)
      : id_(id),
        handle_(std::move(handle)),
        type_(type),
        elements_(elements),
        direction_(direction),
        mode_(mode),
        replicas_(replicas) {}
  const std::string& handle() const { return handle_; }
  std::size_t numElements() const { return elements_; }
  Type elementType() const { return type_; }
  DataStreamType type() const { return direction_; }
  ReplicatedStreamMode replicatedMode() const { return mode_; }
  /// Replication factor of the graph that the stream was added to.
  unsigned replicationFactor() const { return replicas_; }
  std::uint32_t id() const { return id_; }
  friend bool operator==(const DataStream& a, const DataStream& b) {
    return a.id_ == b.id_ && a.handle_ == b.handle_;
  }
  friend bool operator!=(const DataStream& a, const DataStream& b) { return !(a == b); }

 private:
  std::uint32_t id_ = 0;
  std::string handle_;
  Type type_;
  std::size_t elements_ = 0;
  DataStreamType direction_ = DataStreamType::HostToDeviceFIFO;
  ReplicatedStreamMode mode_ = ReplicatedStreamMode::REPLICATE;
  unsigned replicas_ = 1;
};

/// Host memory ("streaming memory") that programs read and write with program::Copy: `repeats`
/// entries of `numElements` elements each.
class RemoteBuffer {
 public:
  RemoteBuffer() = default;
  RemoteBuffer(std::string handle, Type type, std::size_t elements, std::size_t repeats,
               std::shared_ptr<const ipujax::engine::View> view, bool rearrange_on_host,
               bool optimise_memory)
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
  /// Always throw poplar_error: the model copies entries directly, without streams.
  DataStream getIpuToHostStream() const;
  DataStream getHostToIpuStream() const;
  friend bool operator==(const RemoteBuffer& a, const RemoteBuffer& b) {
    return a.view_ == b.view_;  // each buffer has one view, which its copies share
  }
  friend bool operator!=(const RemoteBuffer& a, const RemoteBuffer& b) { return !(a == b); }
  /// For the library: a view of shape [repeats, elements].
  operator const std::shared_ptr<const ipujax::engine::View>&() const {  // NOLINT: see Emit.hpp
    return view_;
  }

 private:
  std::string handle_;
  Type type_;
  std::size_t elements_ = 0;
  std::size_t repeats_ = 1;
  std::shared_ptr<const ipujax::engine::View> view_;
  bool rearrange_on_host_ = false;
  bool optimise_memory_ = false;
};

}  // namespace poplar
