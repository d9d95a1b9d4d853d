#pragma once
#include <span>
#include <string>
#include <string_view>

namespace ipujax::poplar_backend {

/// The properties of a machine that Poplar does not report.
struct Machine {
  std::string name;         ///< that users write
  std::string arch;         ///< for poplar::Target::createIPUTarget
  std::string device_kind;  ///< the kind of device that JAX shows
  unsigned streaming_gigabytes;
  unsigned ipus_per_machine;
};

/// The first is the default.
std::span<const Machine> machines();
/// Throws std::invalid_argument for an unknown name; an empty name means the default.
const Machine& machineByName(std::string_view name);

}  // namespace ipujax::poplar_backend
