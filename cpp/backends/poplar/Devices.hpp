#pragma once
#include <cstdint>

#include "poplar/Engine.hpp"
#include "runtime/Backend.hpp"

namespace ipujax::poplar_backend {

/// A JAX device: the IPUs that it consists of.
struct Place final : runtime::DeviceState {
  explicit Place(const runtime::DevicePlace& the_place) : place(the_place) {}
  const runtime::DevicePlace place;
};

/// IPUs [first, first + num) as Poplar numbers them.
struct IpuRange {
  std::int64_t first = 0;
  std::int64_t num = 0;
  bool overlaps(const IpuRange& other) const {
    return first < other.first + other.num && other.first < first + num;
  }
  friend auto operator<=>(const IpuRange&, const IpuRange&) = default;
};

/// The IPUs of a program's devices, one device for each replica. Arrays are in the host's memory,
/// so replica r may run on any of them. Throws NotSupportedError if Poplar has no device with these
/// IPUs: it lists groups of n that begin at multiples of n.
IpuRange rangeOf(const runtime::DeviceStates& devices, std::int64_t ipus_per_replica);

/// Loads the engine's program on these IPUs, unless it was the last one loaded there; returns
/// whether it did. `id` identifies the program. The caller guarantees that nothing runs there.
bool enter(poplar::Engine& engine, std::uint64_t id, const IpuRange& range,
           std::int64_t tiles_per_ipu);

}  // namespace ipujax::poplar_backend
