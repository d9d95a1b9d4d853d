#include "bindings/backend.hpp"

#include "bindings/model/bindings.hpp"
#include "engine/blas/OpenBlas.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "poplin/MatMul.hpp"
#include "poplin/internal/Plan.hpp"
#include "poplin/internal/VertexCycles.hpp"
#include "popops/ElementWise.hpp"
#include "popops/Fill.hpp"
#include "popops/internal/ElementWiseCost.hpp"
#include "popx/CustomOpCompile.hpp"
#include "popx/Type.hpp"

namespace {

using ipujax::engine::Machine;

std::vector<std::string> machineNames() {
  std::vector<std::string> names;
  for (const auto& machine : ipujax::engine::machines()) names.push_back(machine.name);
  return names;
}

poplar::Target createTarget(const std::string& name, unsigned num_ipus, unsigned tiles_per_ipu,
                            unsigned streaming_gigabytes, double host_gigabytes_per_second,
                            double host_microseconds) {
  Machine machine = poplar::Target::createIPUTarget(num_ipus, name).machine();
  if (tiles_per_ipu) machine.tiles_per_ipu = tiles_per_ipu;
  if (streaming_gigabytes) machine.streaming_gigabytes = streaming_gigabytes;
  if (host_gigabytes_per_second > 0)
    machine.host_bytes_per_second = host_gigabytes_per_second * 1e9;
  if (host_microseconds >= 0) machine.host_latency_seconds = host_microseconds * 1e-6;
  return poplar::Target(ipujax::engine::System{machine, num_ipus});
}

void bindCycles(py::module_& m) {
  auto popops = submodule(m, "popops");
  popops.def("elementwiseCycles", &popops::elementwiseCycles, "op"_a, "type"_a, "n"_a, "workers"_a);
  popops.attr("timerCycles") = popops::elementwise::kTimerCycles;
  auto poplin = submodule(m, "poplin");
  poplin.def("ampVertexCycles", &::poplin::ampVertexCycles, "rows"_a, "float_partials"_a = false);
  poplin.def("matMulCycles", &::poplin::matMulCycles, "target"_a, "m"_a, "k"_a, "n"_a, "type"_a,
             optionsArg());
}

}  // namespace

DebugContext backend::debugOf(std::string name, std::string source) {
  return DebugContext(std::move(name)).withSource(std::move(source));
}

std::string backend::sourceOf(const DebugContext& debug) { return debug.source(); }

Tensor backend::addConstant(Graph& graph, Type type, const Shape& shape, const void* values,
                            const DebugContext& debug) {
  Tensor t = graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR, debug);
  auto& variable = graph.impl().variables[t.view()->variable];
  const auto* data = static_cast<const std::byte*>(values);
  variable.values.assign(data, data + t.numElements() * graph.getTarget().getTypeSize(type));
  variable.is_constant = true;
  return t;
}

Tensor backend::map(Graph& graph, const popx::expr::Expr& expr, const Tensors& ts, Sequence& prog,
                    const DebugContext& debug) {
  return popops::map(graph, expr, ts, prog, debug);
}

void backend::mapInPlace(Graph& graph, const popx::expr::Expr& expr, const Tensors& ts,
                         Sequence& prog, const DebugContext& debug) {
  popops::mapInPlace(graph, expr, ts, prog, debug);
}

void backend::fill(Graph& graph, const Tensor& t, Sequence& prog, const popx::expr::Const& value,
                   const DebugContext& debug) {
  popops::fillWith(graph, t, prog, value, debug);
}

void backend::bind(py::module_& m) {
  ipujax::engine::blas::loadOpenBlas();
  auto poplar = submodule(m, "poplar");
  poplar.attr("DOUBLE") = popx::DOUBLE;
  poplar.def("machineNames", &machineNames);
  poplar.def("createTarget", &createTarget, "machine"_a, "num_ipus"_a, "tiles_per_ipu"_a = 0,
             "streaming_gigabytes"_a = 0, "host_gigabytes_per_second"_a = 0.0,
             "host_microseconds"_a = -1.0);
  bindCycles(m);
  // In PopLibs this is not an invalid_option; in Python it is one, like other wrong user options.
  py::register_exception<poplin::plan::no_plan>(submodule(m, "poplin"), "no_plan",
                                                poplar.attr("invalid_option"));
  submodule(m, "engine")
      .def("compileCustomOps", &popx::compileCustomOps, "source"_a, "flags"_a = "",
           py::call_guard<py::gil_scoped_release>());
  bindEngine(m);
}
