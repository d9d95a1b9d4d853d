#pragma once
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "support/Signature.hpp"

namespace ipujax::runtime {

/// More than any machine has.
constexpr std::uint32_t kMostReplicas = 1 << 16;

template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

// The members of each structure in the order of the format. `archive` is a Writer, which puts them,
// or a Reader, which sets them.
template <class A, Is<TensorSpec> T>
void members(A& archive, T& spec) {
  archive(spec.dtype, spec.shape, spec.bytes, spec.sharding, spec.memory, spec.is_streamed,
          spec.minor_to_major);
}

template <class A, Is<Signature> T>
void members(A& archive, T& s) {
  archive(s.name);
  for (auto* specs : {&s.inputs, &s.outputs})
    archive.list(*specs, 16, [&](auto& spec) { members(archive, spec); });
  archive(s.output_alias, s.has_host_callbacks, s.num_replicas, s.device_ids, s.interface,
          s.takes_seed, s.prints, s.target);
}

/// Refuses, with ExecutableError, a signature that callers could not use.
void verify(const Signature& signature);

}  // namespace ipujax::runtime
