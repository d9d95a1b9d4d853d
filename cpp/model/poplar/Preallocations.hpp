#pragma once

namespace poplar {

/// Memory that was given out by an earlier compilation, for programs that share a device. The model
/// has one program at a time: there is nothing to keep, and every object is empty.
class Preallocations {
 public:
  friend bool operator==(const Preallocations&, const Preallocations&) { return true; }
  friend bool operator!=(const Preallocations&, const Preallocations&) { return false; }
};

}  // namespace poplar
