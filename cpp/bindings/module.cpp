#include "bindings/backend.hpp"
#include "bindings/bindings.hpp"
#include "bindings/embedded.hpp"
#include "compiler_bridge.hpp"
#include "runtime/Backend.hpp"

/// The Python extension `ipujax._poplar._poplar`. The same shared object is the PJRT plugin.
PYBIND11_MODULE(_poplar, m) {
  m.attr("version") = IPUJAX_VERSION;
  m.attr("backend") = ipujax::runtime::backendName();
  using ipujax::runtime::Capabilities;
  py::class_<Capabilities>(m, "Capabilities")
      .def_readonly("images", &Capabilities::images)
      .def_readonly("hardware", &Capabilities::hardware)
      .def_readonly("wide_types", &Capabilities::wide_types)
      .def_readonly("bound_arrays", &Capabilities::bound_arrays)
      .def_readonly("shared_plans", &Capabilities::shared_plans)
      .def_readonly("shared_callbacks", &Capabilities::shared_callbacks)
      .def_readonly("own_headers", &Capabilities::own_headers);
  m.attr("capabilities") = ipujax::runtime::capabilities();
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
