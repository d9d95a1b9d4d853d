#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <sstream>
#include <string>

#include "support/Interrupts.hpp"

namespace ipujax::runtime {

/// How a program's wait for the host ended.
struct Wait {
  bool is_ready = false;  ///< what it waited for is there
  bool was_interrupted = false;
  double seconds = 0;
};

/// Waits until `ready()`, Ctrl-C or the timeout (0: for ever). `interrupts`: their count when the
/// program began.
template <class Ready>
Wait awaitOrInterrupt(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                      Ready ready, double timeout_seconds, std::uint64_t interrupts) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kGlance = std::chrono::milliseconds(20);  // between checks for Ctrl-C
  const auto start = Clock::now();
  Wait wait;
  for (bool late = false; !late;) {
    wait.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    wait.is_ready = ready();
    wait.was_interrupted = interrupts::count() > interrupts;
    if (wait.is_ready || wait.was_interrupted) break;
    late = timeout_seconds > 0 && wait.seconds > timeout_seconds;
    if (!late) changed.wait_for(lock, kGlance, ready);
  }
  return wait;
}

inline std::string textOf(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

}  // namespace ipujax::runtime
