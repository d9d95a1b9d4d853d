#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/HostPorts.hpp"

namespace ipujax::runtime {

/// Results that programs hand out while they run. Each writer (a replica of a program) adds a part;
/// an item is complete once it has all parts, in the writers' order.
///
/// The memory of waiting items is bounded: if another does not fit, the program waits until some
/// are taken, and fails after a timeout. One item always fits.
class Outfeed : public std::enable_shared_from_this<Outfeed> {
 public:
  /// `keeps_last`: a complete item replaces all earlier ones.
  explicit Outfeed(bool keeps_last) : keeps_last_(keeps_last) {}

  /// `bytes`: limit of all waiting items; 0: none. `seconds`: how long a program waits for room;
  /// 0: for ever.
  void setBound(std::size_t bytes, double seconds);

  // Called by programs.

  /// Begins a run and drops items that an earlier run left incomplete.
  void begin(std::size_t writer, std::size_t writers);
  void push(std::size_t writer, std::size_t writers, std::span<const HostArray> arrays,
            std::span<const std::size_t> bytes);

  // Called by any thread.

  /// The arrays of one item.
  using Arrays = std::vector<std::vector<std::byte>>;
  /// Removes and returns all complete items, oldest first.
  std::vector<Arrays> take();
  /// Waits at most this long for a complete item; returns whether there is one.
  bool waitForItem(double seconds);
  /// Drops everything.
  void clear();
  /// Nobody takes items any more: programs that find no room fail with this reason.
  void close(std::string why);
  /// Seconds that programs waited for room.
  double waitSeconds() const;

  enum class Call { kBegin, kPush };
  /// Registers a port for programs with this many writers; returns its id. Operands: the writer's
  /// number (int32) and, for kPush, arrays of these sizes in bytes. Result: the number.
  std::string port(Call call, std::size_t writers, std::vector<std::size_t> bytes);

 private:
  struct Item {
    Arrays arrays;
    std::size_t missing = 0;  // writers
  };
  struct Writer {
    std::uint64_t next = 0;  // item
    std::uint64_t run = 0;
    std::uint64_t interrupts = 0;  // when the run began
  };
  using Lock = std::unique_lock<std::mutex>;

  const Writer& own(std::size_t writer, std::size_t writers) const;
  bool hasRoom(const Writer& writer, std::size_t item_bytes) const;
  void awaitRoom(Lock& lock, std::size_t writer, std::size_t writers, std::size_t item_bytes);
  bool hasItem() const { return !items_.empty() && items_.front().missing == 0; }

  const bool keeps_last_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable completed_, freed_;
  std::vector<Writer> writers_{1};
  std::deque<Item> items_;
  std::uint64_t first_ = 0;  // number of the first of items_
  std::uint64_t run_ = 0, first_of_run_ = 0;
  std::size_t max_bytes_ = 0;
  double timeout_seconds_ = 0, wait_seconds_ = 0;
  bool is_closed_ = false;
  std::string why_;
};

}  // namespace ipujax::runtime
