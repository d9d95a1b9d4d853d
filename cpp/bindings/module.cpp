#include "bindings/backend.hpp"
#include "bindings/bindings.hpp"
#include "bindings/embedded.hpp"
#include "compiler_bridge.hpp"
#include "runtime/Backend.hpp"

/// The Python extension `ipujax._poplar._poplar`. The same shared object is the PJRT plugin.
PYBIND11_MODULE(_poplar, m) {
  m.attr("version") = IPUJAX_VERSION;
  m.attr("backend") = ipujax::runtime::backendName();
  bindPoplar(m);
  bindVertices(m);
  bindExpr(m);
  bindReduce(m);
  bindMove(m);
  bindPoplin(m);
  bindLinalg(m);
  bindRecurrent(m);
  bindNorms(m);
  bindGcl(m);
  bindCustomOps(m);
  bindSignature(m);
  bindEmbedded(m);
  bindFeeds(m);
  backend::bind(m);
  ipujax::plugin::bindPlugin(m);
}
