#include "engine/codelets/CodeletGuard.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "engine/codelets/CodeletStatics.hpp"

namespace ipujax::engine {
namespace {

struct Frame {
  sigjmp_buf end;
  const char* why = nullptr;
};

/// This thread's innermost frame. In static thread-local memory, since a signal handler reads it.
__attribute__((tls_model("initial-exec"))) thread_local Frame* innermost = nullptr;

struct StackRange {
  std::uintptr_t begin = 0, end = 0;
};
__attribute__((tls_model("initial-exec"))) thread_local StackRange stack;

/// The stack on which a thread without stack left handles signals. A thread gets it when it first
/// runs a codelet, unless it already has one.
class SignalStack {
 public:
  SignalStack() {
    findStack();
    stack_t now = {};
    if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
    memory_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) return;
    stack_t own = {};
    own.ss_sp = memory_;
    own.ss_size = kBytes;
    sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    if (memory_ == MAP_FAILED) return;
    stack_t now = {};
    if (sigaltstack(nullptr, &now) == 0 && now.ss_sp == memory_) {
      now.ss_flags = SS_DISABLE;
      sigaltstack(&now, nullptr);
    }
    munmap(memory_, kBytes);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr std::size_t kBytes = 1 << 16;

  static void findStack() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* begin = nullptr;
    std::size_t bytes = 0;
    if (pthread_attr_getstack(&attributes, &begin, &bytes) == 0) {
      stack.begin = reinterpret_cast<std::uintptr_t>(begin);
      stack.end = stack.begin + bytes;
    }
    pthread_attr_destroy(&attributes);
  }

  void* memory_ = MAP_FAILED;
};

/// Whether an unmapped address is one that the stack would have grown to.
bool isOfStack(const void* address) {
  constexpr std::uintptr_t kGuard = 1 << 16;  // the codelet's frames are probed page by page
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at + kGuard >= stack.begin && at < stack.end;
}

struct Caught {
  int signal;
  const char* why;
  struct sigaction before;  ///< written before the handler is installed
};
std::array<Caught, 6> caught = {{
    {SIGFPE, "divides an integer by zero, or the least integer by -1", {}},
    {SIGILL, "runs into a trap, as __builtin_trap() is", {}},
    {SIGTRAP, "runs into a trap, as __builtin_trap() is", {}},
    {SIGABRT, "calls abort(), as std::terminate() does", {}},
    {SIGSEGV, "reads or writes memory that is not there", {}},
    {SIGBUS, "reads or writes memory that is not there", {}},
}};

const char* whyOf(const Caught& which, const siginfo_t* info) {
  if (which.signal == SIGSEGV && isOfStack(info->si_addr))
    return "needs more stack than its thread has, as a recursion without an end does";
  return which.why;
}

/// Acts as if this handler did not exist: a faulting instruction faults again, and the process ends
/// as it would have.
void passOn(const Caught& which, int signal, siginfo_t* info, void* context) {
  if ((which.before.sa_flags & SA_SIGINFO) != 0)
    return which.before.sa_sigaction(signal, info, context);
  if (which.before.sa_handler != SIG_DFL && which.before.sa_handler != SIG_IGN)
    return which.before.sa_handler(signal);
  const bool sent = info->si_code <= 0;  // no instruction faults again
  if (sent && which.before.sa_handler == SIG_IGN) return;
  std::signal(signal, SIG_DFL);
  if (sent) raise(signal);
}

// Async-signal-safe: it jumps out of the codelet, or calls the handler that was there.
void handle(int signal, siginfo_t* info, void* context) {
  for (const Caught& which : caught) {
    if (which.signal != signal) continue;
    const bool from_outside = info->si_code == SI_USER;
    if (innermost == nullptr || from_outside) return passOn(which, signal, info, context);
    leaveGuarded(whyOf(which, info));
  }
}

/// Once per process: a handler that is installed later should come first.
void watchSignals() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (Caught& which : caught) {
      if (sigaction(which.signal, nullptr, &which.before) != 0) continue;
      struct sigaction own = {};
      own.sa_sigaction = handle;
      own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // the handler does not return
      sigemptyset(&own.sa_mask);
      sigaction(which.signal, &own, nullptr);
    }
  });
}

/// Makes a frame the innermost while it lives, however the call ends.
class Entered {
 public:
  explicit Entered(Frame& frame) : outer_(std::exchange(innermost, &frame)) {}
  ~Entered() { innermost = outer_; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  Frame* const outer_;
};

}  // namespace

void guarded(GuardedCall call) {
  watchSignals();
  static thread_local const SignalStack signal_stack;
  (void)signal_stack;
  Frame frame;
  const Entered entered(frame);
  const std::size_t constructed = numConstructed();
  if (sigsetjmp(frame.end, 0) != 0) {
    letGo(constructed);
    throw CodeletFault(frame.why);
  }
  call();
}

bool isGuarded() { return innermost != nullptr; }

void leaveGuarded(const char* why) {
  if (innermost == nullptr) std::abort();
  innermost->why = why;
  siglongjmp(innermost->end, 1);
}

}  // namespace ipujax::engine
