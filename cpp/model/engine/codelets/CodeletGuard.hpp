#pragma once
#include <stdexcept>

namespace ipujax::engine {

/// A codelet did something that ends a process; what() begins with a verb, as in "calls abort()".
class CodeletFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs codelet code, call(), on this thread. Throws CodeletFault if that code divides an integer
/// by zero, runs into a trap, aborts, exits, touches unmapped memory or has no stack left. The code
/// ends there: destructors of its variables do not run. Exceptions pass through. Calls may be
/// nested.
///
/// The processor reports faults by signals, so codelets run as fast as without a guard. Earlier
/// signal handlers get all signals that come from elsewhere.
class GuardedCall {
 public:
  template <class F>
  GuardedCall(const F& f)  // NOLINT: implicit by design, so that a lambda can be passed
      : object_(&f), call_([](const void* o) { (*static_cast<const F*>(o))(); }) {}
  void operator()() const { call_(object_); }

 private:
  const void* object_;
  void (*call_)(const void*);
};
void guarded(GuardedCall call);

/// Whether this thread is in a guarded call. Async-signal-safe.
bool isGuarded();

/// Makes this thread's innermost guarded call throw CodeletFault(why), or ends the process outside
/// of guarded calls. `why` must outlive the call.
[[noreturn]] void leaveGuarded(const char* why);

}  // namespace ipujax::engine
