#pragma once
#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <cstdint>

namespace ipujax::runtime {

/// Ctrl-C, for programs that wait for the host. Python's handler only notes the signal, and raises
/// KeyboardInterrupt when the main thread, which may wait for such a program, runs Python again.
namespace interrupts {

/// From now on counts SIGINT, then calls the handler that is installed. Does nothing where none is.
void watch();
/// Counts one more, as watch() does at each: async-signal-safe.
void note();
/// At each that is counted from now on calls `other`, too, which is async-signal-safe: note() of a
/// library that has its own listeners.
void relay(void (*other)());
/// How many came since the process began.
std::uint64_t count();

/// What a Listener's thread is sent. Who makes listeners handles it: where nobody does, it is
/// ignored.
constexpr int kListenerSignal = SIGURG;

/// Sends the thread that made it kListenerSignal after each SIGINT that is counted, while it lives.
/// One beyond the first thousand hears nothing.
class Listener {
 public:
  Listener();
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  std::atomic<pid_t>* slot_ = nullptr;
};

}  // namespace interrupts
}  // namespace ipujax::runtime
