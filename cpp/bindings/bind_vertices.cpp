#include <sstream>

#include "bindings/bindings.hpp"
#include "poplar/CycleCount.hpp"

namespace {

void bindCycleStamp(py::module_& poplar) {
  poplar.def(
      "cycleStamp",
      [](Graph& g, Sequence& prog, unsigned tile, const DebugContext& debug) {
        return poplar::cycleStamp(g, prog, tile, poplar::SyncType::INTERNAL, debug);
      },
      "graph"_a, "prog"_a, "tile"_a, debugArg());
}

}  // namespace

// Codelets, the vertices of compute sets, and cycle counters. Runs after bindPoplar, to whose
// classes it adds functions.
void bindVertices(py::module_& m) {
  using poplar::ComputeSet;
  using poplar::FieldRef;
  using poplar::VertexRef;
  namespace program = poplar::program;
  auto poplar = submodule(m, "poplar");
  // Errors in users' codelets are ValueErrors as well.
  const py::object bad = py::make_tuple(poplar.attr("poplar_error"),
                                        py::reinterpret_borrow<py::object>(PyExc_ValueError));
  py::register_exception<poplar::graph_program_compilation_error>(
      poplar, "graph_program_compilation_error", bad.ptr());
  py::register_exception<poplar::graph_connection_error>(poplar, "graph_connection_error",
                                                         bad.ptr());
  py::register_exception<poplar::unknown_vertex_type>(poplar, "unknown_vertex_type", bad.ptr());
  py::class_<ComputeSet>(poplar, "ComputeSet");
  py::class_<FieldRef>(poplar, "FieldRef");
  py::class_<VertexRef>(poplar, "VertexRef")
      .def("__getitem__", [](const VertexRef& v, const std::string& field) { return v[field]; });
  auto graph = py::reinterpret_borrow<py::class_<Graph>>(poplar.attr("Graph"));
  graph
      .def(
          "addCodelets",
          [](Graph& g, const std::string& source, const std::string& flags) {
            const py::gil_scoped_release release;  // a compiler runs
            std::istringstream stream(source);
            g.addCodelets(stream, flags);
          },
          "source"_a, "compileFlags"_a = "")
      .def(
          "addCodeletFile",  // C++, or a .gp file
          [](Graph& g, const std::string& path, const std::string& flags) {
            const py::gil_scoped_release release;
            g.addCodelets(path, poplar::CodeletFileType::Auto, flags);
          },
          "path"_a, "compileFlags"_a = "")
      .def("addComputeSet", &Graph::addComputeSet, debugArg())
      .def(
          "addVertex",
          [](Graph& g, ComputeSet cs, const std::string& type) { return g.addVertex(cs, type); },
          "cs"_a, "vertexType"_a)
      .def(
          "connect", [](Graph& g, const FieldRef& field, const Tensor& t) { g.connect(field, t); },
          "field"_a, "tensor"_a)
      .def(
          "setInitialValue",
          [](Graph& g, const FieldRef& field, double value) { g.setInitialValue(field, value); },
          "field"_a, "value"_a)
      .def("setPerfEstimate",
           py::overload_cast<const poplar::VertexRef&, std::uint64_t, std::uint64_t>(
               &Graph::setPerfEstimate),
           "v"_a, "cycles"_a, "flops"_a = 0)
      .def("setTileMapping", py::overload_cast<poplar::VertexRef, unsigned>(&Graph::setTileMapping),
           "v"_a, "tileNum"_a);
  bindCycleStamp(poplar);
  auto p = submodule(poplar, "program");
  py::class_<program::Execute, program::Program>(p, "Execute")
      .def(py::init<ComputeSet, const DebugContext&>(), "cs"_a, debugArg());
}
