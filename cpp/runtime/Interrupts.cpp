#include "runtime/Interrupts.hpp"

#include <atomic>
#include <csignal>
#include <mutex>

namespace ipujax::runtime {
namespace {

std::atomic<std::uint64_t> num_interrupts{0};
struct sigaction previous;  // written before `handle` is installed

// Async-signal-safe: an atomic addition and the handler that was there.
void handle(int signal, siginfo_t* info, void* context) {
  num_interrupts.fetch_add(1, std::memory_order_relaxed);
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else {
    previous.sa_handler(signal);
  }
}

}  // namespace

void interrupts::watch() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  struct sigaction now = {};
  if (sigaction(SIGINT, nullptr, &now) != 0) return;
  const bool takes_info = (now.sa_flags & SA_SIGINFO) != 0;
  if (takes_info && now.sa_sigaction == handle) return;
  if (!takes_info && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
  previous = now;
  now.sa_flags |= SA_SIGINFO;
  now.sa_sigaction = handle;
  sigaction(SIGINT, &now, nullptr);
}

std::uint64_t interrupts::count() { return num_interrupts.load(std::memory_order_relaxed); }

}  // namespace ipujax::runtime
