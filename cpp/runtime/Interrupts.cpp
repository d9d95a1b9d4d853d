#include "runtime/Interrupts.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>

namespace ipujax::runtime {
namespace {

std::atomic<std::uint64_t> num_interrupts{0};
struct sigaction previous;  // written before `handle` is installed

/// The threads of listeners, or 0. A thread that has ended meanwhile is not sent anything, and one
/// that has its number since then has no listener: its handler does nothing.
std::array<std::atomic<pid_t>, 1000> listeners;

std::atomic<void (*)()> relayed{nullptr};

// Async-signal-safe: note() and the handler that was there.
void handle(int signal, siginfo_t* info, void* context) {
  interrupts::note();
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else {
    previous.sa_handler(signal);
  }
}

}  // namespace

// Atomic operations and system calls.
void interrupts::note() {
  num_interrupts.fetch_add(1, std::memory_order_relaxed);
  const int error = errno;
  for (const auto& listener : listeners) {
    const pid_t thread = listener.load(std::memory_order_relaxed);
    if (thread != 0) syscall(SYS_tgkill, getpid(), thread, kListenerSignal);
  }
  errno = error;
  if (auto* const other = relayed.load()) other();
}

void interrupts::relay(void (*other)()) { relayed.store(other); }

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
  sigaddset(&now.sa_mask, kListenerSignal);  // whose handler may not return to this one
  sigaction(SIGINT, &now, nullptr);
}

std::uint64_t interrupts::count() { return num_interrupts.load(std::memory_order_relaxed); }

interrupts::Listener::Listener() {
  const auto thread = static_cast<pid_t>(syscall(SYS_gettid));
  for (auto& listener : listeners) {
    pid_t nobody = 0;
    if (!listener.compare_exchange_strong(nobody, thread)) continue;
    slot_ = &listener;
    return;
  }
}

interrupts::Listener::~Listener() {
  if (slot_) slot_->store(0);
}

}  // namespace ipujax::runtime
