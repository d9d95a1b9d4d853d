#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>

namespace ipujax::engine {

/// Working memory that only grows, 64-byte aligned; what is in it is lost when it does. Made to be
/// thread_local in a kernel's file.
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  ~Block() { std::free(data_); }
  std::byte* get(std::size_t bytes) {
    if (bytes > size_) {
      std::free(data_);
      size_ = 0;
      bytes = (bytes + 63) / 64 * 64;
      data_ = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
      if (!data_) throw std::bad_alloc();
      size_ = bytes;
    }
    return data_;
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ipujax::engine
