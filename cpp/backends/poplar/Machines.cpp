#include "backends/poplar/Machines.hpp"

#include <array>
#include <stdexcept>

namespace ipujax::poplar_backend {

std::span<const Machine> machines() {
  // DRAM and IPUs of one machine: an IPU-M2000 or Bow-2000 by default. A C600 card has one IPU and
  // shares its host's DRAM. Architectures: "ipu1" is Mk1, "ipu2" Mk2 and Bow, "ipu21" C600.
  static const std::array<Machine, 4> all = {{{"gc200", "ipu2", "IPU Mk2 (GC200)", 64, 4},
                                              {"bow", "ipu2", "IPU Bow", 64, 4},
                                              {"c600", "ipu21", "IPU C600", 64, 4},
                                              {"gc2", "ipu1", "IPU Mk1 (GC2)", 64, 4}}};
  return all;
}

const Machine& machineByName(std::string_view name) {
  if (name.empty()) return machines().front();
  std::string known;
  for (const Machine& machine : machines()) {
    if (machine.name == name) return machine;
    known += (known.empty() ? "" : ", ") + machine.name;
  }
  throw std::invalid_argument("[machine] needs one of " + known + "; got '" + std::string(name) +
                              "'. Use one of these names.");
}

}  // namespace ipujax::poplar_backend
