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

/// A ring buffer of batches. One host thread pushes batches and programs fetch them.
///
/// The readers (the replicas of a program) share each batch: it is split along every array's first
/// dimension into one part for each group of `copies` consecutive readers. A batch leaves the ring
/// once all readers have it. Programs with the same number of readers may share a feed and its
/// batches; a program with another number of readers takes the feed over.
class Infeed : public std::enable_shared_from_this<Infeed> {
 public:
  struct Stats {
    std::uint64_t pushed = 0;   ///< batches
    std::uint64_t fetched = 0;  ///< batches that all readers have
    double wait_seconds = 0;    ///< that readers waited for batches
  };

  /// `bytes`: size of each array of a batch. `depth`: number of batches that the ring holds.
  Infeed(std::vector<std::size_t> bytes, unsigned depth);

  /// Computes checksums of batches from now on, for `check`. `widths`: element sizes in bytes.
  void verify(std::vector<std::size_t> widths) { widths_ = std::move(widths); }

  const std::vector<std::size_t>& bytes() const { return bytes_; }

  // Called by the thread that pushes.

  /// Waits until a batch fits; make the next one only then. False if the feed was closed.
  bool waitForRoom();
  /// Copies a batch into the ring, which has room.
  void push(std::span<const std::byte* const> arrays);
  /// No more batches will come.
  void end();
  /// No more batches will come: programs that fetch fail with this reason.
  void fail(std::string why);

  // Called by any thread.

  /// Ends all waits: programs that fetch fail with this reason.
  void close(std::string why);
  /// Empties the feed and opens it again from batch 0. The pushing thread must have ended.
  void reset();
  /// Seconds that a program waits for a batch before it fails; 0: for ever.
  void setTimeout(double seconds);
  Stats stats() const;

  // Called by programs.

  /// Begins a run. Readers that an earlier run left at different batches skip to the furthest one.
  void begin(std::size_t reader, std::size_t readers);
  /// Copies the reader's part of the next batch to `arrays`. At the end of the data, writes zeros
  /// and returns false, or throws FeedError if `stops` is false. Also throws if no batch comes.
  bool fetch(std::size_t reader, std::size_t readers, std::size_t copies,
             std::span<std::byte* const> arrays, bool stops);

  /// Throws FeedError unless these are the checksums of the batch that the reader fetched last.
  void check(std::size_t reader, std::size_t readers, std::span<const Checksum> arrived) const;

  enum class Call { kBegin, kFetch, kFetchOrStop, kCheck };
  /// Registers a port for programs with this many readers; returns its id. Operands: the reader's
  /// number (int32) and, for kCheck, the checksums (uint32[arrays, 2]).
  /// Results: this number; for kFetchOrStop, a bool that tells if there was a batch; the arrays.
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
    std::size_t parts = 0;                    // that `sums` covers
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
  mutable std::mutex mutex_;                    // guards all below; slots are copied without it
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
