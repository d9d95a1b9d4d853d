#pragma once
#include "engine/VertexAbi.hpp"

// Replacements (by the linker's --wrap) for functions that a tile does not have, in codelet
// libraries: functions that end a process or start something that would outlive the vertex end the
// codelet with a program error. So do integer divisions by zero. Every source of a library defines
// these, so they are weak.
#define IPUJAX_EACH __attribute__((weak))
#define IPUJAX_SHOWN __attribute__((weak, visibility("default")))
extern "C" {
/// Set by the model before anything runs. `why` follows the name of the codelet.
IPUJAX_SHOWN void (*ipujax_leave)(const char* why) = nullptr;

#define IPUJAX_END(name, parameters)                                      \
  [[noreturn]] IPUJAX_EACH void __wrap_##name parameters { /* NOLINT: the linker's */ \
    ipujax_leave("calls " #name "()");                                    \
    __builtin_trap();                                                     \
  }
IPUJAX_END(abort, ())
IPUJAX_END(exit, (int))
IPUJAX_END(_exit, (int))
IPUJAX_END(_Exit, (int))
IPUJAX_END(quick_exit, (int))
IPUJAX_END(pthread_exit, (void*))
IPUJAX_END(fork, ())
IPUJAX_END(vfork, ())
#undef IPUJAX_END

#define IPUJAX_THREAD(name)                                                               \
  [[noreturn]] IPUJAX_EACH void __wrap_##name() { /* NOLINT: the linker's */    \
    ipujax_leave("starts a thread, where a tile has the workers of a MultiVertex alone"); \
    __builtin_trap();                                                                     \
  }
IPUJAX_THREAD(pthread_create)
IPUJAX_THREAD(thrd_create)
/// std::thread of libstdc++.
IPUJAX_THREAD(_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE)
#undef IPUJAX_THREAD

/// Destructors of static and thread-local variables do not run: they would run outside the guard.
IPUJAX_EACH int __wrap___cxa_atexit(void (*)(void*), void*, void*) { return 0; }         // NOLINT
IPUJAX_EACH int __wrap___cxa_at_quick_exit(void (*)(void*), void*) { return 0; }         // NOLINT
IPUJAX_EACH int __wrap___cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }  // NOLINT

/// Set by the model before anything runs.
IPUJAX_SHOWN const IpujaxStatics* ipujax_statics = nullptr;

/// Called around constructors of static variables in functions. It waits here, where workers that
/// take turns let others run.
IPUJAX_EACH int __wrap___cxa_guard_acquire(void* guard) {  // NOLINT
  int answer = kIpujaxWait;
  while (answer == kIpujaxWait) answer = ipujax_statics->acquire(guard);
  return answer == kIpujaxConstruct;
}
IPUJAX_EACH void __wrap___cxa_guard_release(void* guard) { ipujax_statics->release(guard); }  // NOLINT
IPUJAX_EACH void __wrap___cxa_guard_abort(void* guard) { ipujax_statics->abort(guard); }      // NOLINT

/// Called for integer divisions by zero with -fsanitize=integer-divide-by-zero, which then needs no
/// library: for processors that continue with a quotient of 0.
IPUJAX_EACH void __ubsan_handle_divrem_overflow(void*, void*, void*) {
  ipujax_leave("divides an integer by zero");
}
}
#undef IPUJAX_EACH
#undef IPUJAX_SHOWN
