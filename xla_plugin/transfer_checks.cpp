#include "transfer_checks.hpp"

#include <atomic>

namespace ipujax::plugin {
namespace {

std::atomic<bool> is_on{false};

}  // namespace

void transfer_checks::set(bool on) { is_on.store(on, std::memory_order_relaxed); }

bool transfer_checks::isOn() { return is_on.load(std::memory_order_relaxed); }

}  // namespace ipujax::plugin
