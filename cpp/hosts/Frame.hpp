#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ipujax::hosts {

/// Where a process is: the program, and the place in it.
struct Position {
  std::uint64_t program = 0;  ///< a fingerprint, the same in all processes
  std::uint64_t number = 0;   ///< of the step or condition
  std::string name;           ///< "psum (train.py:31) of step"
};

/// The first message of a process to another one in an exchange. It says where the process is, so
/// that processes which do different things notice, and carries the bytes if they are few.
class Frame {
 public:
  static constexpr std::size_t kBytes = 1024;
  static constexpr std::size_t kMostInline = 640;

  Frame() = default;
  /// `bytes`: how many the sender sends in all.
  Frame(const Position& position, std::uint64_t bytes);
  static Frame failure(const std::string& reason);

  std::array<std::byte, kBytes>& raw() { return raw_; }
  std::span<std::byte> inlined() { return std::span(raw_).last(kMostInline); }

  /// Throws PeerError unless the frame's sender is at the same place and sends as many bytes.
  void check(std::uint32_t sender, std::uint32_t self, const Position& own,
             std::uint64_t bytes) const;

 private:
  std::array<std::byte, kBytes> raw_{};
};

}  // namespace ipujax::hosts
