#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/Checksum.hpp"
#include "runtime/HostPorts.hpp"

namespace ipujax::runtime {

/// A ring of batches between one thread of the host, which pushes, and programs, which fetch.
///
/// Several readers (the replicas of a program) share each batch. It has as many parts, along every
/// array's first dimension, as there are readers, or fewer: then `copies` readers in a row get the
/// same part. A batch leaves the ring once all readers have it. Programs with as many readers may
/// share a feed, and then share its batches; one with another number of them takes the feed over.
class Infeed : public std::enable_shared_from_this<Infeed> {
 public:
  struct Stats {
    std::uint64_t pushed = 0;   ///< batches
    std::uint64_t fetched = 0;  ///< batches that all readers have
    double wait_seconds = 0;    ///< in which readers waited for a batch
  };

  /// `bytes`: of each array of a batch. `depth`: batches that the ring holds.
  Infeed(std::vector<std::size_t> bytes, unsigned depth);

  /// Takes checksums of batches from now on, for `check`. `widths`: bytes of each array's elements.
  void verify(std::vector<std::size_t> widths) { widths_ = std::move(widths); }

  const std::vector<std::size_t>& bytes() const { return bytes_; }

  // Called by the thread that pushes.

  /// Until a batch fits: only then the next one should be made. False: the feed was closed.
  bool waitForRoom();
  /// Copies a batch into the ring, which has room.
  void push(std::span<const std::byte* const> arrays);
  /// There are no more.
  void end();
  /// There are no more, for this reason: programs that fetch get it as their error.
  void fail(std::string why);

  // Called by any thread.

  /// Nobody waits any more: programs that fetch get an error with this reason.
  void close(std::string why);
  /// Empty and open again, from batch 0. The thread that pushed must have ended.
  void reset();
  /// Seconds that a program waits for a batch before it fails; 0: for ever.
  void setTimeout(double seconds);
  Stats stats() const;

  // Called by programs.

  /// A run begins. Readers that an earlier run left at different batches meet at the furthest.
  void begin(std::size_t reader, std::size_t readers);
  /// Copies the reader's part of the next batch to `arrays`. False: the data ended; zeros.
  /// Throws FeedError if the data ended and `stops` is false, and where no batch comes.
  bool fetch(std::size_t reader, std::size_t readers, std::size_t copies,
             std::span<std::byte* const> arrays, bool stops);

  /// Throws FeedError unless these are the checksums of what the reader fetched last.
  void check(std::size_t reader, std::size_t readers, std::span<const Checksum> arrived) const;

  enum class Call { kBegin, kFetch, kFetchOrStop, kCheck };
  /// What programs of so many readers call; registered. Operands: the reader's number (int32), and
  /// of kCheck the checksums (uint32[arrays, 2]).
  /// Results: this number; of kFetchOrStop, a bool whether there was a batch; the arrays.
  std::string port(Call call, std::size_t readers, std::size_t copies);

 private:
  enum class State { kOpen, kEnded, kFailed, kClosed };
  struct Reader {
    std::uint64_t next = 0;  // batch
    std::uint64_t run = 0;
    std::uint64_t interrupts = 0;  // when the run began
    bool is_copying = false;
    std::vector<Checksum> sent = {};  // of each array, if they are verified
  };
  struct Slot {
    std::vector<std::vector<std::byte>> arrays;
    std::size_t parts = 0;                    // whose checksums these are
    std::vector<std::vector<Checksum>> sums;  // [array][part]
  };
  using Lock = std::unique_lock<std::mutex>;

  const Reader& own(std::size_t reader, std::size_t readers) const;
  void awaitBatch(Lock& lock, std::size_t reader, std::size_t readers);
  [[noreturn]] void failNow(const Reader& reader) const;
  std::vector<Checksum> sentTo(std::size_t part, std::size_t parts, const Slot& slot) const;
  void release();
  void stop(State state, std::string why);

  const std::vector<std::size_t> bytes_;
  const unsigned depth_;
  std::vector<std::size_t> widths_;             // empty: nothing is verified
  std::atomic<std::size_t> expected_parts_{1};  // of the programs that will fetch
  std::vector<Slot> slots_;                     // [depth]
  mutable std::mutex mutex_;                    // guards what follows; slots are copied without it
  std::condition_variable pushed_, freed_;
  std::vector<Reader> readers_;
  std::uint64_t head_ = 0, tail_ = 0;  // batches pushed, and released
  std::uint64_t run_ = 0, first_of_run_ = 0;
  unsigned num_copying_ = 0;
  State state_ = State::kOpen;
  std::string why_;
  double timeout_seconds_ = 0, wait_seconds_ = 0;
};

}  // namespace ipujax::runtime
