#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ipujax::runtime {

/// Where a program is when its processes meet. All of them must be at the same place.
struct MeetingPlace {
  std::uint64_t number;   ///< of the step or condition in the program
  std::string_view what;  ///< "psum at train.py:31"
};

/// Bytes for another process of a program.
struct Outgoing {
  std::uint32_t process;
  std::span<const std::byte> bytes;
};

/// Memory for the bytes that another process of a program sends.
struct Incoming {
  std::uint32_t process;
  std::span<std::byte> bytes;
};

/// The processes that run the replicas of one program, this one among them. Processes are numbered
/// within the program, from 0 on.
class Peers {
 public:
  /// `processes`: the process of each replica.
  Peers(std::vector<std::uint32_t> processes, std::uint32_t self)
      : processes_(std::move(processes)), self_(self) {}
  virtual ~Peers() = default;
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  const std::vector<std::uint32_t>& processes() const { return processes_; }
  std::uint32_t self() const { return self_; }

  /// Before the first exchange of a run, on the thread that runs it.
  virtual void begin() = 0;
  /// Sends and receives all of these, at most one each way for each other process. Throws if a
  /// process is gone or silent for too long, or is at another place.
  virtual void exchange(const MeetingPlace& place, std::span<const Outgoing> sends,
                        std::span<const Incoming> receives) = 0;
  /// The run failed here: the other processes fail, too, with this reason.
  virtual void fail(const std::string& reason) noexcept = 0;
  /// From any thread: the exchange in progress, or else the next one, throws.
  virtual void cancel() noexcept = 0;
  virtual void forgetCancel() noexcept = 0;

 private:
  const std::vector<std::uint32_t> processes_;
  const std::uint32_t self_;
};

}  // namespace ipujax::runtime
