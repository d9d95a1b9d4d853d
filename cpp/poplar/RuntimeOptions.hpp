#pragma once
#include "poplar/OptionFlags.hpp"

namespace poplar {

/// Options that may differ from run to run: target.syncMethod, target.hostSyncTimeout,
/// streamCallbacks.* and the like. They tune how a host waits for an IPU, so none changes what the
/// model does; names and values are checked all the same.
class RuntimeOptions {
 public:
  RuntimeOptions() = default;
  /// Throws invalid_option for an option that no Poplar documents for runs. What the environment
  /// has in POPLAR_RUNTIME_OPTIONS comes on top.
  explicit RuntimeOptions(const OptionFlags& options);
  const OptionFlags& flags() const { return options_; }

 private:
  OptionFlags options_;
};

}  // namespace poplar
