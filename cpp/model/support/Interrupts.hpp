#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>

namespace ipujax::runtime {

/// Ctrl-C, for programs that run. Python's handler only notes the signal, and raises
/// KeyboardInterrupt when the main thread, which may wait for such a program, runs Python again.
/// Programs hear of it kGrace later: an error of theirs would otherwise be raised before it.
namespace interrupts {

constexpr std::chrono::milliseconds kGrace{500};

/// From now on counts each SIGINT, after kGrace, and calls the handler that is installed. Does
/// nothing where none is.
void watch();
/// Counts one more, as watch() does for each: async-signal-safe.
void note();
/// Called on a thread of its own after each that is counted, and again soon while it returns true.
void react(bool (*reaction)());
/// At each that is counted from now on calls `other`, too, which is async-signal-safe: note() of a
/// library that has its own listeners.
void relay(void (*other)());
/// How many were counted since the process began.
std::uint64_t count();
/// The same, with those that came less than kGrace ago: what begins now precedes only later ones.
std::uint64_t number();

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
