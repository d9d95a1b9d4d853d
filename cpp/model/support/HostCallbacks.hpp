#pragma once
#include <cstdint>
#include <exception>
#include <span>
#include <string>

namespace ipujax::runtime {

/// One array handed to, or expected from, a host callback. Row-major, contiguous.
struct HostArray {
  std::string dtype;  ///< JAX's name: "float32", "bfloat16", ...
  std::span<const std::int64_t> shape;
  void* data;
};

/// How a program calls back into the host. Implemented by the plugin (which knows Python);
/// `call` blocks until the results are written and throws what the callback raised. Replicas of a
/// program call at the same time, each on its own thread.
class HostCallbacks {
 public:
  virtual ~HostCallbacks() = default;
  virtual void call(const std::string& id, std::span<const HostArray> arguments,
                    std::span<const HostArray> results) = 0;
  /// Whether threads other than the program's may call now; else replicas call in turn.
  virtual bool takesManyThreads() const { return true; }
  /// Tells early that the run will end with this error, once callbacks of other replicas have
  /// returned: those callbacks may wait for the one that failed.
  virtual void failed(const std::exception_ptr& error) noexcept { (void)error; }
};

}  // namespace ipujax::runtime
