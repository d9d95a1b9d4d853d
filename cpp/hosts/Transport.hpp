#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "hosts/KeyValueStore.hpp"

namespace ipujax::hosts {

using Deadline = std::chrono::steady_clock::time_point;

/// A message to a process. Both ends give the messages between two processes the same numbers.
struct Send {
  std::uint32_t process;
  std::uint64_t number;
  std::span<const std::byte> bytes;
};
struct Receive {
  std::uint32_t process;
  std::uint64_t number;
  std::span<std::byte> bytes;
};

/// Moves bytes between the processes of a job.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Returns once all bytes are received and all that are sent may change. Calls `arrived` with the
  /// index of each message that was received, in order, before it waits for more; if that throws,
  /// nothing else is waited for. Throws PeerLost if a process is gone or the deadline passes, and
  /// ExchangeCancelled after `cancel`; messages of up to kKept bytes are then sent all the same, so
  /// that their receivers come to the ones that are posted after them.
  virtual void exchange(std::span<const Send> sends, std::span<const Receive> receives,
                        Deadline deadline, const std::function<void(std::size_t)>& arrived) = 0;
  /// Sends a message that may never be received.
  virtual void post(std::uint32_t process, std::uint64_t number, std::string bytes) noexcept = 0;
  /// From any thread: the exchange in progress, or else the next one, throws.
  virtual void cancel() noexcept = 0;
  virtual void forgetCancel() noexcept = 0;
  /// Closes all connections: the other processes lose this one.
  virtual void close() noexcept = 0;

  static constexpr std::size_t kKept = 1024;
};

/// Whether this build can connect processes.
bool canConnect();
/// Connects all processes. `address`: of this process, for the others.
std::unique_ptr<Transport> connect(KeyValueStore& store, std::uint32_t self, std::uint32_t count,
                                   const std::string& address, std::chrono::milliseconds patience);

}  // namespace ipujax::hosts
