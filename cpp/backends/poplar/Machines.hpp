#pragma once
#include <span>
#include <string>
#include <string_view>

namespace ipujax::poplar_backend {

/// What Poplar does not say of a machine.
struct Machine {
  std::string name;         ///< what users write
  std::string arch;         ///< what poplar::Target::createIPUTarget takes
  std::string device_kind;  ///< what JAX shows of a device
  unsigned streaming_gigabytes;
  unsigned ipus_per_machine;
};

/// The first is the default.
std::span<const Machine> machines();
/// Throws std::invalid_argument; the empty name is the default's.
const Machine& machineByName(std::string_view name);

}  // namespace ipujax::poplar_backend
