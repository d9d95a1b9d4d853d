#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ipujax::runtime {

/// A memory-mapped file that may be truncated while it is used. Where its pages are gone the system
/// sends SIGBUS, which would end the process; while this lives, they are zeros instead, and it
/// tells. Any thread may use the memory. One beyond the first thousand changes nothing.
class MappedMemory {
 public:
  MappedMemory(const void* begin, std::size_t bytes);
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  bool isTorn() const;  ///< whether pages were gone

  struct Range {
    std::atomic<bool> is_taken{false};
    std::atomic<std::uintptr_t> begin{0}, end{0};
    std::atomic<bool> is_torn{false};
  };

 private:
  Range* range_ = nullptr;
};

}  // namespace ipujax::runtime
