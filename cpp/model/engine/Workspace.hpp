#pragma once
#include <cstddef>
#include <cstdint>

namespace ipujax::engine {

/// A scope of the calling thread's working memory, which is freed when the scope ends. Scopes of a
/// thread end in reverse order of creation; other threads may use the memory of an open scope.
/// Once a thread has run its kernels, taking memory needs no further allocation.
///
/// The thread keeps one block, as large as its peak use. Above 32 MiB the block shrinks after 4096
/// outermost scopes in a row that needed less than half of it; a thread that waits for work longer
/// than a second frees it (release).
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;

  /// Uninitialised memory for `count` values of type T; 64-byte aligned.
  template <class T = std::byte>
  T* get(std::int64_t count) {
    return reinterpret_cast<T*>(take(static_cast<std::size_t>(count) * sizeof(T)));
  }

  /// Frees the memory that the calling thread keeps, unless a scope is open.
  static void release();
  /// Bytes that the calling thread keeps.
  static std::size_t keptBytes();

 private:
  struct Arena;
  static Arena& arenaOfThread();
  std::byte* take(std::size_t bytes);

  Arena& arena_;
  std::size_t block_;  // block of the arena where this scope begins
  std::size_t used_;   // bytes of it
};

}  // namespace ipujax::engine
