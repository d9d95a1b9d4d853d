#pragma once
#include <cstdint>

namespace ipujax::engine {

/// Around a codelet's compute(), in a call of guarded(): after Ctrl-C it may run for another
/// second, and is then left as by a fault. Where none came it costs two additions. Ctrl-C is what
/// runtime::interrupts counts: by Python's own handler.
class Interruptible {
 public:
  explicit Interruptible(bool enabled);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// Where a guarded call of this thread threw CodeletFault: no destructor ran.
  static void left();

 private:
  volatile std::uint64_t* number_;
};

}  // namespace ipujax::engine
