#pragma once
#include <stdexcept>

namespace ipujax::engine {

/// A codelet did what ends a process: what() begins with a verb, as in "calls abort()".
class CodeletFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs code of codelets on this thread: call(). Throws CodeletFault where that code divides an
/// integer by zero, runs into a trap, aborts, exits, touches memory that is not there or has no
/// stack left. It ends at that place: destructors of its variables do not run. Exceptions pass
/// through. Calls may be nested.
///
/// The processor tells by signals, so codelets run as fast as without a guard. Handlers of signals
/// that were there before get all that come from elsewhere.
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

/// Ends the innermost guarded call of this thread, which throws CodeletFault(why); the process
/// where there is none. `why` outlives the call.
[[noreturn]] void leaveGuarded(const char* why);

}  // namespace ipujax::engine
