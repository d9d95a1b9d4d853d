#pragma once
#include <cstdint>

namespace ipujax::engine {

/// Put around a codelet's compute(), in a call of guarded(): after Ctrl-C it may run for another
/// second, and is then left as by a fault. Without Ctrl-C this costs two additions. Ctrl-C is
/// noted by Python's own handler and counted by runtime::interrupts.
class Interruptible {
 public:
  explicit Interruptible(bool enabled);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// Call this after a guarded call of this thread threw CodeletFault: no destructor ran.
  static void left();

 private:
  volatile std::uint64_t* number_;
};

}  // namespace ipujax::engine
