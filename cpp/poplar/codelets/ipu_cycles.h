#pragma once
#include <cstdint>
#include <stdexcept>

// Counts the issue slots that a worker takes, where the model compiles with IPUJAX_COUNTS_CYCLES;
// elsewhere there is no counter. The model adds ran() to each block of a codelet's source.
namespace ipujax_cycles {

#ifdef IPUJAX_COUNTS_CYCLES
struct Counter {
  std::uint64_t slots = 0;
  std::uint64_t limit = ~std::uint64_t{0};
  std::uint64_t begin = 0;  ///< cycles of the tile before the worker began
};

inline Counter& counter() {
  static thread_local Counter one;
  return one;
}

inline void add(std::uint64_t slots) {
  Counter& c = counter();
  c.slots += slots;
  if (c.slots > c.limit) throw std::runtime_error("more issue slots than are counted");
}

/// Of an intrinsic.
inline void issue(unsigned slots) { add(slots); }

/// Of a block of the source, which may be in a function that the compiler evaluates.
constexpr void ran(unsigned slots) {
  if (!__builtin_is_constant_evaluated()) add(slots);
}

/// A worker has one slot in six cycles.
inline std::uint64_t cycles() { return counter().begin + 6 * counter().slots; }
#else
inline void issue(unsigned) {}
#endif

}  // namespace ipujax_cycles
