#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"
#include "poplar/HostFunctionCallback.hpp"
#include "poplar/StreamCallback.hpp"

namespace poplar::internal {

/// The host's end of an engine's streams: callbacks, and memory that is passed block by block and
/// started over at its end. Called by the threads of the program's replicas; if a callback is
/// connected, only if the run has `threads_for_callbacks`.
///
/// A stream has a lane for each replica of the program and, within it, for each replica that
/// createReplicatedGraph made (its parts); a broadcast stream has one lane for all.
class EngineStreams final : public ipujax::engine::HostStreams {
 public:
  explicit EngineStreams(std::shared_ptr<const ipujax::engine::Image> image);

  /// Bytes that one copy moves in all lanes; throws stream_connection_error for an unknown handle.
  std::uint64_t bytesOf(const std::string& handle) const;
  /// Divides the memory equally among the lanes, in order.
  void connect(const std::string& handle, void* begin, void* end);
  /// Connects memory to one replica.
  void connect(const std::string& handle, unsigned replica, void* begin);
  void connect(const std::string& handle, const StreamCallbackHandle& callback);  ///< to all lanes
  void connectLane(const std::string& handle, unsigned lane, StreamCallbackHandle callback);
  /// Throws stream_connection_error if no host function has this handle.
  void connectFunction(const std::string& handle, unsigned lane,
                       const HostCallbackHandle& callback);
  /// Called before a program runs: discards blocks left over from fetches for all lanes.
  /// `threads_for_callbacks`: callbacks of several replicas may run at the same time.
  void begin(bool threads_for_callbacks);

  void read(std::uint32_t stream, std::uint32_t replica, void* device,
            std::uint64_t bytes) override;
  void write(std::uint32_t stream, std::uint32_t replica, const void* device,
             std::uint64_t bytes) override;
  ipujax::engine::StreamThreads threads() const override {
    using ipujax::engine::StreamThreads;
    if (!has_callbacks_) return StreamThreads::kPool;
    return threads_for_callbacks_ ? StreamThreads::kEachReplica : StreamThreads::kOne;
  }
  void print(const std::string& line) override;
  void printTo(std::ostream& os) { printed_ = &os; }
  std::vector<std::string> handles() const;  ///< of streams that programs name

 private:
  struct Lane {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
    std::byte* at = nullptr;
    std::optional<StreamCallbackHandle> callback;
  };
  /// Blocks that some replicas have read and others have not.
  struct Shared {
    std::mutex mutex;  ///< guards the members below
    std::deque<std::vector<std::byte>> blocks;
    std::uint64_t first = 0;           ///< index of the first block
    std::vector<std::uint64_t> taken;  ///< by replica
  };
  std::size_t numberOf(const std::string& handle) const;
  unsigned lanesOf(std::size_t stream) const;
  Lane& laneOf(const std::string& handle, std::size_t stream, unsigned lane);
  Lane& connected(std::uint32_t stream, std::size_t lane);
  void fetch(Lane& lane, void* block, std::uint64_t bytes);
  void fetchShared(std::uint32_t stream, std::uint32_t replica, void* device, std::uint64_t bytes);
  static std::byte* advance(Lane& lane, std::uint64_t bytes);

  std::shared_ptr<const ipujax::engine::Image> image_;
  std::vector<std::vector<Lane>> lanes_;  ///< by stream; a broadcast has one per replica
  std::vector<Shared> shared_;            ///< by stream
  bool has_callbacks_ = false;
  bool threads_for_callbacks_ = false;
  std::mutex print_mutex_;  ///< one line at a time
  std::ostream* printed_;
};

}  // namespace poplar::internal
