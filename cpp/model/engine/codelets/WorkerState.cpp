#include "engine/codelets/WorkerState.hpp"

// A stack contains bytes that sanitizers guard, and memory may be another vertex's, too.
#define IPUJAX_UNCHECKED __attribute__((no_sanitize("address", "thread"), noinline))

namespace ipujax::engine {
namespace {

std::size_t sizeOf(const IpujaxRange& range) {
  return static_cast<std::size_t>(static_cast<const char*>(range.end) -
                                  static_cast<const char*>(range.begin));
}

IPUJAX_UNCHECKED std::uint64_t mixed(std::uint64_t hash, const IpujaxRange& range) {
  constexpr std::uint64_t kPrime = 0x9e3779b97f4a7c15u;
  const auto* at = static_cast<const volatile unsigned char*>(range.begin);
  std::size_t n = sizeOf(range);
  const auto add = [&](std::uint64_t word) {
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 29;
  };
  for (; n > 0 && reinterpret_cast<std::uintptr_t>(at) % sizeof(std::uint64_t) != 0; --n)
    add(*at++);
  for (; n >= sizeof(std::uint64_t); n -= sizeof(std::uint64_t), at += sizeof(std::uint64_t))
    add(*reinterpret_cast<const volatile std::uint64_t*>(at));
  for (; n > 0; --n) add(*at++);
  return hash;
}

IPUJAX_UNCHECKED bool equal(const std::byte* kept, const IpujaxRange& range) {
  const auto* now = static_cast<const volatile std::byte*>(range.begin);
  for (std::size_t i = 0, n = sizeOf(range); i < n; ++i)
    if (kept[i] != now[i]) return false;
  return true;
}

IPUJAX_UNCHECKED std::byte* copied(std::byte* to, const IpujaxRange& range) {
  const auto* from = static_cast<const volatile std::byte*>(range.begin);
  for (std::size_t i = 0, n = sizeOf(range); i < n; ++i) *to++ = from[i];
  return to;
}

}  // namespace

std::uint64_t hashOf(const std::vector<IpujaxRange>& memory) {
  std::uint64_t hash = 0;
  for (const IpujaxRange& range : memory) hash = mixed(hash, range);
  return hash;
}

void WorkerState::forget() {
  frame_ = nullptr;
  blocks_ = keeps_ = 0;
  returned_ = false;
}

/// States are kept after 4, 8, 16 ... blocks, so that a loop of any length is found.
bool WorkerState::isKnown(const Own& own) {
  ++blocks_;
  if (frame_ == own.stack.begin) {
    const std::byte* at = kept_.data();
    bool same = true;
    for (const IpujaxRange& range : {own.registers, own.stack, own.ipu}) {
      same = same && equal(at, range);
      at += sizeOf(range);
    }
    if (same) return true;
  }
  if (frame_ == nullptr || blocks_ >= std::uint64_t{2} << keeps_) keep(own);
  return false;
}

void WorkerState::keep(const Own& own) {
  kept_.resize(sizeOf(own.registers) + sizeOf(own.stack) + sizeOf(own.ipu));
  std::byte* at = kept_.data();
  for (const IpujaxRange& range : {own.registers, own.stack, own.ipu}) at = copied(at, range);
  frame_ = own.stack.begin;
  blocks_ = 0;
  ++keeps_;
  returned_ = false;
}

}  // namespace ipujax::engine
