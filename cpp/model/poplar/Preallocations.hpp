#pragma once

namespace poplar {

/// Memory allocated by an earlier compilation, for programs that share a device. The model runs one
/// program at a time, so these objects are always empty.
class Preallocations {
 public:
  friend bool operator==(const Preallocations&, const Preallocations&) { return true; }
  friend bool operator!=(const Preallocations&, const Preallocations&) { return false; }
};

}  // namespace poplar
