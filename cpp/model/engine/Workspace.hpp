#pragma once
#include <cstddef>
#include <cstdint>

namespace ipujax::engine {

/// A scope of the calling thread's working memory: what it takes is given back when it ends. Scopes
/// of a thread end in the opposite order of their beginnings; other threads may use what one of
/// them holds. Taking costs no allocation once a thread has seen what its kernels need.
///
/// What is kept: one block, as large as the most that was in use at one time. Above 32 MiB it
/// shrinks after 4096 outermost scopes in a row that needed less than half of it; a thread that
/// waits for work longer than a second gives all of it back (release).
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;

  /// Memory for `count` values of type T, which hold anything; 64-byte aligned.
  template <class T = std::byte>
  T* get(std::int64_t count) {
    return reinterpret_cast<T*>(take(static_cast<std::size_t>(count) * sizeof(T)));
  }

  /// Gives back what the calling thread keeps, unless a scope is open.
  static void release();
  /// What the calling thread keeps.
  static std::size_t keptBytes();

 private:
  struct Arena;
  static Arena& arenaOfThread();
  std::byte* take(std::size_t bytes);

  Arena& arena_;
  std::size_t block_;  // of the arena, where this scope begins
  std::size_t used_;   // bytes of it
};

}  // namespace ipujax::engine
