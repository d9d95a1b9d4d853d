#include "support/Interrupts.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <thread>

namespace ipujax::runtime {
namespace {

std::atomic<std::uint64_t> num_interrupts{0}, num_signals{0};
struct sigaction previous;  // written before `handle` is installed

/// The threads of listeners, or 0. A thread that has ended meanwhile gets no signal, and a new one
/// with its number has no listener: its handler does nothing.
std::array<std::atomic<pid_t>, 1000> listeners;

std::atomic<void (*)()> relayed{nullptr};
std::atomic<bool (*)()> reaction_{nullptr};

// Shared by the handler and the thread that waits for it, in the process with this number.
std::atomic<pid_t> waiting_process{0};
std::atomic<int> came{-1};

void waitForInterrupts(int events) {
  constexpr std::chrono::milliseconds kLook{20};
  for (bool again = false;;) {
    pollfd wait{.fd = events, .events = POLLIN, .revents = 0};
    const int found = poll(&wait, 1, again ? static_cast<int>(kLook.count()) : -1);
    if (found < 0) continue;  // a signal
    eventfd_t count = 0;
    if (found > 0 && eventfd_read(events, &count) == 0) {
      std::this_thread::sleep_for(interrupts::kGrace);
      while (count-- > 0) interrupts::note();
    }
    auto* const react = reaction_.load();
    again = react != nullptr && react();
  }
}

/// A forked process has no such thread until it calls watch() itself.
void startWaiting() {
  if (waiting_process.load() == getpid()) return;
  const int events = eventfd(0, EFD_CLOEXEC);
  if (events < 0) return;
  came.store(events);
  std::thread([events] { waitForInterrupts(events); }).detach();
  waiting_process.store(getpid());
}

// Async-signal-safe: it only uses system calls, note() and the previous handler.
void handle(int signal, siginfo_t* info, void* context) {
  num_signals.fetch_add(1);
  const int error = errno;
  const bool later = waiting_process.load() == getpid() && eventfd_write(came.load(), 1) == 0;
  errno = error;
  if (!later) interrupts::note();
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else {
    previous.sa_handler(signal);
  }
}

}  // namespace

// Only atomic operations and system calls.
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

void interrupts::react(bool (*reaction)()) { reaction_.store(reaction); }

void interrupts::watch() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  struct sigaction now = {};
  if (sigaction(SIGINT, nullptr, &now) != 0) return;
  const bool takes_info = (now.sa_flags & SA_SIGINFO) != 0;
  if (takes_info && now.sa_sigaction == handle) return startWaiting();
  if (!takes_info && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
  startWaiting();
  previous = now;
  now.sa_flags |= SA_SIGINFO;
  now.sa_sigaction = handle;
  sigaddset(&now.sa_mask, kListenerSignal);  // whose handler may not return to this one
  sigaction(SIGINT, &now, nullptr);
}

std::uint64_t interrupts::count() { return num_interrupts.load(std::memory_order_relaxed); }
std::uint64_t interrupts::number() { return std::max(num_signals.load(), count()); }

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
