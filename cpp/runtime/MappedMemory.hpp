#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ipujax::runtime {

/// A memory-mapped file that may be truncated while it is used. Access to a missing page raises
/// SIGBUS, which would end the process; while this object lives, the page reads as zeros instead.
/// Any thread may use the memory. At most 1000 files are protected at a time.
class MappedMemory {
 public:
  MappedMemory(const void* begin, std::size_t bytes);
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  bool isTorn() const;  ///< whether pages were missing

  struct Range {
    std::atomic<bool> is_taken{false};
    std::atomic<std::uintptr_t> begin{0}, end{0};
    std::atomic<bool> is_torn{false};
  };

 private:
  Range* range_ = nullptr;
};

}  // namespace ipujax::runtime
