#pragma once
#include <cstdint>
#include <functional>
#include <memory>

namespace ipujax::engine {

/// Non-owning reference to a callable; lives only for the call it is passed to. No allocation.
class RangeFn {
 public:
  template <typename F>
  RangeFn(const F& f)  // NOLINT: implicit by design, so that a lambda can be passed
      : object_(&f), call_([](const void* o, std::int64_t begin, std::int64_t end) {
          (*static_cast<const F*>(o))(begin, end);
        }) {}
  void operator()(std::int64_t begin, std::int64_t end) const { call_(object_, begin, end); }

 private:
  const void* object_;
  void (*call_)(const void*, std::int64_t, std::int64_t);
};

/// The process's worker threads for data-parallel loops inside one step. Several threads may call
/// parallelFor at once; a call from inside a parallelFor body runs inline. Created at first use,
/// so a fork before that is safe; after a fork the child makes its own workers.
class ThreadPool {
 public:
  static ThreadPool& shared();
  ~ThreadPool();

  int numThreads() const;
  /// Splits [0, n) into chunks of at least `grain` and calls fn(begin, end) for each, on the
  /// caller and the workers; returns when all are done. The first exception is rethrown.
  void parallelFor(std::int64_t n, std::int64_t grain, RangeFn fn);

 private:
  ThreadPool();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ipujax::engine
