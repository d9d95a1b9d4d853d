#pragma once
#include <cstddef>
#include <functional>

#include "poplar/OptionFlags.hpp"

namespace poplar {

/// Options that may differ from run to run, instead of those that the engine was made with.
/// streamCallbacks.multiThreadMode and numWorkerThreads say whether the callbacks of several
/// replicas are called at one time (Engine). The others (target.syncMethod, target.hostSyncTimeout
/// and the like) tune how a host waits for an IPU, so they change nothing in the model; their names
/// are checked all the same.
class RuntimeOptions {
 public:
  RuntimeOptions() = default;
  /// Throws invalid_option for an option that no Poplar documents for runs. What the environment
  /// has in POPLAR_RUNTIME_OPTIONS comes on top.
  explicit RuntimeOptions(const OptionFlags& options);
  const OptionFlags& flags() const { return options_; }
  friend bool operator==(const RuntimeOptions& a, const RuntimeOptions& b) {
    return a.options_ == b.options_;
  }
  friend bool operator!=(const RuntimeOptions& a, const RuntimeOptions& b) { return !(a == b); }

 private:
  OptionFlags options_;
};

}  // namespace poplar

template <>
struct std::hash<poplar::RuntimeOptions> {
  std::size_t operator()(const poplar::RuntimeOptions& options) const;
};
