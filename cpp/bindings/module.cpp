#include "bindings/bindings.hpp"
#include "compiler_bridge.hpp"
#include "engine/blas/OpenBlas.hpp"

/// The Python extension `ipujax._poplar._poplar`. The same shared object is the PJRT plugin.
PYBIND11_MODULE(_poplar, m) {
  ipujax::engine::blas::loadOpenBlas();
  m.attr("version") = IPUJAX_VERSION;
  bindPoplar(m);
  bindVertices(m);
  bindExpr(m);
  bindReduce(m);
  bindMove(m);
  bindPoplin(m);
  bindLinalg(m);
  bindGcl(m);
  bindCustomOps(m);
  bindEngine(m);
  ipujax::plugin::bindPlugin(m);
}
