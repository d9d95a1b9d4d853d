#pragma once
#include <cstddef>
#include <functional>

#include "poplar/OptionFlags.hpp"

namespace poplar {

/// Options of single runs, which override those of the engine. streamCallbacks.multiThreadMode and
/// numWorkerThreads decide whether the callbacks of several replicas run at the same time (see
/// Engine). The others (target.syncMethod, target.hostSyncTimeout and the like) tune how a host
/// waits for an IPU: they change nothing in the model, but their names are checked.
class RuntimeOptions {
 public:
  RuntimeOptions() = default;
  /// Throws invalid_option for an option that no Poplar version documents for runs. Options in the
  /// environment variable POPLAR_RUNTIME_OPTIONS override these.
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
