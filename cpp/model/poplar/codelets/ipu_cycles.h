#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "engine/VertexAbi.hpp"

// Counts a worker's issue slots if the model compiles with IPUJAX_COUNTS_CYCLES; otherwise there is
// no counter. The model adds ran() to each block of a codelet's source.
namespace ipujax_cycles {

#ifdef IPUJAX_COUNTS_CYCLES
// The first and the last byte of a linked library.
extern "C" {
extern const char __ehdr_start __attribute__((visibility("hidden")));  // NOLINT: its name
extern const char _end __attribute__((visibility("hidden")));          // NOLINT
}

struct Counter {
  std::uint64_t slots = 0;
  std::uint64_t limit = ~std::uint64_t{0};
  std::uint64_t begin = 0;  ///< cycles of the tile before the worker began
  const IpujaxRange* ranges = nullptr;  ///< of the vertex's memory; null: no checks
  std::size_t num_ranges = 0;
};

inline Counter& counter() {
  static thread_local Counter one;
  return one;
}

// If workers may wait, the count must not stay in a register: a waiting loop would never return to
// the same registers.
#ifdef IPUJAX_WORKERS_WAIT
__attribute__((noinline))
#endif
inline void add(std::uint64_t slots) {
  Counter& c = counter();
  c.slots += slots;
  if (c.slots > c.limit) throw std::runtime_error("more issue slots than are counted");
}

/// Counts the slots of an intrinsic.
inline void issue(unsigned slots) { add(slots); }

/// Counts the slots of a source block, which may be in a function evaluated at compile time.
constexpr void ran(unsigned slots) {
  if (!__builtin_is_constant_evaluated()) add(slots);
}

/// Checks a load or store of `bytes` by an intrinsic: a load may begin one vector early or late, as
/// in loops that load the next element in advance.
inline void access(const void* address, std::size_t bytes, bool loads) {
  const Counter& c = counter();
  if (c.ranges == nullptr) return;
  const auto* at = static_cast<const char*>(address);
  const char here = 0;  // the stack has a codelet's own arrays, the library its tables
  if ((at > &here && at < &here + (1 << 20)) || (at >= &__ehdr_start && at < &_end)) return;
  const std::ptrdiff_t more = loads ? 16 : 0;
  for (std::size_t i = 0; i < c.num_ranges; ++i) {
    const auto* begin = static_cast<const char*>(c.ranges[i].begin);
    const auto* end = static_cast<const char*>(c.ranges[i].end);
    if (at >= begin - more && at + bytes <= end + more) return;
  }
  throw std::out_of_range(loads ? "[ipu::load_postinc] needs an address in a tensor of the vertex; "
                                  "got one outside. Correct the pointer or the step."
                                : "[ipu::store_postinc] needs an address in a tensor of the "
                                  "vertex; got one outside. Correct the pointer or the step.");
}

/// A worker has one slot in six cycles.
inline std::uint64_t cycles() { return counter().begin + 6 * counter().slots; }
#else
inline void issue(unsigned) {}
inline void access(const void*, std::size_t, bool) {}
#endif

}  // namespace ipujax_cycles
