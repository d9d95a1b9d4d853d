#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>

namespace ipujax::runtime {

/// Ctrl-C during running programs. Python's handler only notes the signal, and raises
/// KeyboardInterrupt when the main thread, which may wait for such a program, runs Python again.
/// Programs are told kGrace later: otherwise their error would be raised before it.
namespace interrupts {

constexpr std::chrono::milliseconds kGrace{500};

/// From now on counts each SIGINT, after kGrace, and calls the installed handler. Does nothing if
/// there is none.
void watch();
/// Counts one SIGINT, as watch() does for each; async-signal-safe.
void note();
/// Calls `reaction` on a separate thread after each counted SIGINT, and again soon if it is true.
void react(bool (*reaction)());
/// From now on also calls `other` at each counted SIGINT. It must be async-signal-safe, such as
/// note() of a library that has its own listeners.
void relay(void (*other)());
/// Number of SIGINTs counted since the process began.
std::uint64_t count();
/// The same, including those less than kGrace ago: what begins now precedes only later ones.
std::uint64_t number();

/// The signal sent to a Listener's thread. Code that makes listeners handles it; otherwise it is
/// ignored.
constexpr int kListenerSignal = SIGURG;

/// While it exists, sends kListenerSignal to the thread that made it after each counted SIGINT.
/// Listeners beyond the first thousand do nothing.
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
