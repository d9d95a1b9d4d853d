#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/Image.hpp"
#include "engine/Kernel.hpp"
#include "poplar/HostFunctionCallback.hpp"
#include "poplar/StreamCallback.hpp"

namespace poplar::internal {

/// The host's end of an engine's streams: memory walked block by block and started over at its
/// end, and callbacks. Called by the thread that runs the program.
class EngineStreams final : public ipujax::engine::HostStreams {
 public:
  explicit EngineStreams(std::shared_ptr<const ipujax::engine::Image> image);

  /// The bytes that one copy moves; throws stream_connection_error for an unknown handle.
  std::uint64_t bytesOf(const std::string& handle) const;
  void connect(const std::string& handle, void* begin, void* end);
  void connect(const std::string& handle, StreamCallbackHandle callback);
  /// Throws stream_connection_error where no host function has this handle.
  void connectFunction(const std::string& handle, HostCallbackHandle callback);
  void read(std::uint32_t stream, void* device, std::uint64_t bytes) override;
  void write(std::uint32_t stream, const void* device, std::uint64_t bytes) override;
  void print(const std::string& line) override;
  void printTo(std::ostream& os) { printed_ = &os; }
  std::vector<std::string> handles() const;  ///< of the program's own streams

 private:
  struct Connection {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
    std::byte* at = nullptr;
    std::optional<StreamCallbackHandle> callback;
  };
  std::size_t numberOf(const std::string& handle) const;
  Connection& connected(std::uint32_t stream);
  static std::byte* advance(Connection& c, std::uint64_t bytes);

  std::shared_ptr<const ipujax::engine::Image> image_;
  std::vector<Connection> connections_;
  std::ostream* printed_;
};

}  // namespace poplar::internal
