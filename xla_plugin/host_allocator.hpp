#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace ipujax::plugin {

/// Host memory for buffers, 64-byte aligned. Freed blocks are kept by size class and given out
/// again: fresh pages of a large array cost more than the copy into them. Thread-safe. What is
/// kept is bounded; when the bound is met everything kept is returned to the system.
class HostAllocator {
 public:
  static constexpr std::size_t kAlignment = 64;

  static HostAllocator& shared();  ///< lives as long as the process: buffers may outlive clients
  explicit HostAllocator(std::size_t max_kept_bytes) : max_kept_bytes_(max_kept_bytes) {}
  ~HostAllocator();

  std::byte* allocate(std::size_t bytes);         ///< throws std::bad_alloc
  void free(std::byte* data, std::size_t bytes);  ///< as many bytes as were asked for
  void trim();                                    ///< returns everything kept to the system
  std::size_t keptBytes() const;

 private:
  std::map<std::size_t, std::vector<std::byte*>> takeKept();

  const std::size_t max_kept_bytes_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> kept_;  // by size class
  std::vector<std::byte*> small_;  // the smallest class, which scalars use, without a look-up
  std::size_t kept_bytes_ = 0;
};

}  // namespace ipujax::plugin
