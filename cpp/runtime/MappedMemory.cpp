#include "runtime/MappedMemory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>

namespace ipujax::runtime {
namespace {

std::array<MappedMemory::Range, 1000> ranges;
struct sigaction previous;  // written before `handle` is installed
std::uintptr_t page_bytes = 0;

/// Replaces a missing page by zeros. Async-signal-safe: only uses atomic operations and mmap.
bool repair(std::uintptr_t at) {
  for (auto& range : ranges) {
    if (at < range.begin.load() || at >= range.end.load()) continue;
    range.is_torn.store(true);
    const int error = errno;
    auto* const page = reinterpret_cast<void*>(at / page_bytes * page_bytes);
    const bool repaired = mmap(page, page_bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page;
    errno = error;
    return repaired;
  }
  return false;
}

void handle(int signal, siginfo_t* info, void* context) {
  if (repair(reinterpret_cast<std::uintptr_t>(info->si_addr))) return;
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    return previous.sa_handler(signal);
  sigaction(signal, &previous, nullptr);  // the access is repeated, and ends the process
}

void handleSignals() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  struct sigaction now = {};
  if (sigaction(SIGBUS, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle) return;
  page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  previous = now;
  struct sigaction own = {};
  own.sa_sigaction = handle;
  own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // the previous handler may not return
  sigemptyset(&own.sa_mask);
  sigaction(SIGBUS, &own, nullptr);
}

}  // namespace

MappedMemory::MappedMemory(const void* begin, std::size_t bytes) {
  handleSignals();
  for (auto& range : ranges) {
    if (range.is_taken.exchange(true)) continue;
    range_ = &range;
    range.is_torn.store(false);
    range.begin.store(reinterpret_cast<std::uintptr_t>(begin));
    range.end.store(reinterpret_cast<std::uintptr_t>(begin) + bytes);
    return;
  }
}

MappedMemory::~MappedMemory() {
  if (!range_) return;
  range_->end.store(0);
  range_->is_taken.store(false);
}

bool MappedMemory::isTorn() const { return range_ && range_->is_torn.load(); }

}  // namespace ipujax::runtime
