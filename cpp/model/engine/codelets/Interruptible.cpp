#include "engine/codelets/Interruptible.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <mutex>

#include "engine/codelets/CodeletGuard.hpp"
#include "support/Interrupts.hpp"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace ipujax::engine {
namespace {

namespace interrupts = runtime::interrupts;

constexpr time_t kGraceSeconds = 1;
constexpr int kMostLooks = 3;

/// A thread that runs codelets, for its signal handler; in static thread-local memory.
struct Watched {
  volatile std::uint64_t number;  ///< changes with each call of compute(); odd while it runs
  std::uint64_t seen;             ///< `number` at the last look
  int looks;                      ///< since Ctrl-C
  timer_t timer;
  bool has_timer;
};
__attribute__((tls_model("initial-exec"))) thread_local Watched watched;

void lookAgain() {
  itimerspec after = {};
  after.it_value.tv_sec = kGraceSeconds;
  watched.seen = watched.number;
  timer_settime(watched.timer, 0, &after, nullptr);
}

struct sigaction before;  // written before `handle` is installed

// Async-signal-safe: uses thread-local memory and timer_settime.
void handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool is_timer = info->si_code == SI_TIMER;
  const bool is_sent = info->si_code == SI_TKILL && info->si_pid == getpid();
  if (is_sent && watched.has_timer) {
    watched.looks = 0;
    lookAgain();
  } else if (is_timer && watched.has_timer) {
    const bool runs = watched.number % 2 == 1 && isGuarded();
    if (runs && watched.number == watched.seen) leaveGuarded("runs on after Ctrl-C");
    if (++watched.looks < kMostLooks) lookAgain();
  } else if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  }
  errno = error;
}

void handleSignals() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (sigaction(interrupts::kListenerSignal, nullptr, &before) != 0) return;
    struct sigaction own = {};
    own.sa_sigaction = handle;
    own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER;  // it may not return
    sigemptyset(&own.sa_mask);
    sigaction(interrupts::kListenerSignal, &own, nullptr);
  });
}

/// Watches a thread that has run a codelet, until the thread ends.
class Watch {
 public:
  Watch() {
    handleSignals();
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = interrupts::kListenerSignal;
    event.sigev_notify_thread_id = static_cast<pid_t>(syscall(SYS_gettid));
    watched.has_timer = timer_create(CLOCK_MONOTONIC, &event, &watched.timer) == 0;
  }
  ~Watch() {
    if (!watched.has_timer) return;
    watched.has_timer = false;
    timer_delete(watched.timer);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  interrupts::Listener listener_;
};

volatile std::uint64_t* numberOf(bool enabled) {
  if (!enabled) return nullptr;
  static thread_local const Watch watch;
  (void)watch;
  return &watched.number;
}

}  // namespace

Interruptible::Interruptible(bool enabled) : number_(numberOf(enabled)) {
  if (number_) *number_ = *number_ + 1;
}

Interruptible::~Interruptible() {
  if (number_) *number_ = *number_ + 1;
}

void Interruptible::left() { watched.number = watched.number + watched.number % 2; }

}  // namespace ipujax::engine

/// Visible in libpoplar.so: for an extension that is built against it and handles Ctrl-C in its own
/// copy of runtime::interrupts, see cpp/backends/poplar/Interrupts.cpp.
extern "C" __attribute__((visibility("default"))) void ipujax_model_note_interrupt() {
  ipujax::runtime::interrupts::note();
}
