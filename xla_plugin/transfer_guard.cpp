#include "transfer_guard.hpp"

#include <atomic>

namespace ipujax::plugin {
namespace {

std::atomic<bool> process_guarded{false};
thread_local std::optional<bool> thread_guarded;

}  // namespace

void transfer_guard::setForProcess(bool guarded) { process_guarded.store(guarded); }

void transfer_guard::setForThread(std::optional<bool> guarded) { thread_guarded = guarded; }

bool transfer_guard::active() {
  return thread_guarded.value_or(process_guarded.load(std::memory_order_relaxed));
}

}  // namespace ipujax::plugin
