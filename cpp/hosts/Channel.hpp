#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "hosts/Frame.hpp"
#include "hosts/Transport.hpp"
#include "support/Peers.hpp"

namespace ipujax::hosts {

/// The connections of a process to the others of its job, used by one program at a time, in the
/// order of calls. The first failure of a program closes it for good: processes that have lost
/// their common place cannot find it again.
class Channel {
 public:
  /// `silence`: how long a process may take to come to where this one is.
  Channel(std::unique_ptr<Transport> transport, std::uint32_t self, std::uint32_t count,
          std::chrono::milliseconds silence);

  std::uint32_t self() const { return self_; }

  /// A place in the order of programs, for a call. Each is ended once, whether or not it was
  /// entered.
  std::uint64_t takeTurn();
  void enterTurn(std::uint64_t turn);  ///< waits for the calls before
  void endTurn(std::uint64_t turn);

  void requireOpen() const;  ///< throws the first failure
  /// Sends and receives all of these, in the order in which they are named for each process. A
  /// failure closes the channel.
  void exchange(const Position& position, std::span<const runtime::Outgoing> sends,
                std::span<const runtime::Incoming> receives);
  /// Closes the channel and tells all processes why.
  void fail(const std::string& reason) noexcept;
  void awaitAll();  ///< until all turns have ended
  void cancel() noexcept { transport_->cancel(); }
  void forgetCancel() noexcept { transport_->forgetCancel(); }

 private:
  void exchangeAll(const Position& position, std::span<const runtime::Outgoing> sends,
                   std::span<const runtime::Incoming> receives);

  const std::unique_ptr<Transport> transport_;
  const std::uint32_t self_;
  const std::chrono::milliseconds silence_;
  std::vector<std::atomic<std::uint64_t>> sent_;  // messages, by process
  std::vector<std::uint64_t> received_;           // messages, by process

  mutable std::mutex mutex_;
  std::condition_variable turn_changed_;
  std::uint64_t turns_taken_ = 0;
  std::uint64_t turn_ = 0;
  std::set<std::uint64_t> ended_;  // turns after turn_
  std::string failure_;
};

}  // namespace ipujax::hosts
