#include "bindings/bindings.hpp"
#include "popx/CustomOp.hpp"

// Libraries of custom ops. Users' functions run without the GIL: they may be slow to build a graph.
void bindCustomOps(py::module_& m) {
  using popx::CustomOpLibrary;
  auto popx = submodule(m, "popx");
  const auto free = py::call_guard<py::gil_scoped_release>();
  py::class_<CustomOpLibrary>(popx, "CustomOpLibrary")
      .def_static("compile", &CustomOpLibrary::compile, "source"_a, "flags"_a = "", free)
      .def_static("load", &CustomOpLibrary::load, "path"_a, free)
      .def("has", &CustomOpLibrary::has, "function"_a)
      .def("build", &CustomOpLibrary::build, "graph"_a, "name"_a, "inputs"_a, "attributes"_a,
           "debug_prefix"_a, "prog"_a, free)
      .def("buildGradient", &CustomOpLibrary::buildGradient, "graph"_a, "name"_a, "input"_a,
           "gradients"_a, "fwd_inputs"_a, "fwd_outputs"_a, "attributes"_a, "debug_prefix"_a,
           "prog"_a, free);
}
