#include "engine/blas/MicroKernel.hpp"

namespace ipujax::engine::blas {

const MicroTable& micro() {
  static const MicroTable& table = IPUJAX_PICK(microTable)();
  return table;
}

}  // namespace ipujax::engine::blas
