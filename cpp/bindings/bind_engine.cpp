#include <pybind11/stl.h>

#include "bindings/bindings.hpp"
#include "engine/Image.hpp"
#include "engine/build/Build.hpp"

namespace py = pybind11;
using namespace pybind11::literals;
namespace engine = ipujax::engine;

namespace {

std::vector<engine::TensorSpec> tensorSpecs(const py::handle& list) {
  std::vector<engine::TensorSpec> specs;
  for (const auto& item : list) {
    engine::TensorSpec spec;
    spec.dtype = item["dtype"].cast<std::string>();
    spec.shape = item["shape"].cast<std::vector<std::int64_t>>();
    spec.bytes = item["bytes"].cast<std::uint64_t>();
    spec.sharding = item["sharding"].cast<std::string>();
    specs.push_back(std::move(spec));
  }
  return specs;
}

engine::Signature signatureOf(const py::dict& d) {
  engine::Signature s;
  s.name = d["name"].cast<std::string>();
  s.inputs = tensorSpecs(d["inputs"]);
  s.outputs = tensorSpecs(d["outputs"]);
  s.output_alias = d["output_alias"].cast<std::vector<std::int32_t>>();
  s.has_host_callbacks = d["has_host_callbacks"].cast<bool>();
  s.num_replicas = d["num_replicas"].cast<std::uint32_t>();
  s.interface = d["interface"].cast<std::string>();
  return s;
}

py::dict costDict(const engine::Cost& c) {
  return py::dict(
      "compute_cycles"_a = c.compute_cycles, "mean_compute_cycles"_a = c.mean_compute_cycles,
      "exchange_cycles"_a = c.exchange_cycles, "sync_cycles"_a = c.sync_cycles,
      "link_cycles"_a = c.link_cycles, "exchange_bytes"_a = c.exchange_bytes,
      "link_bytes"_a = c.link_bytes, "flops"_a = c.flops, "temporary_bytes"_a = c.temporary_bytes,
      "vertex_state_bytes"_a = c.vertex_state_bytes, "code_bytes"_a = c.code_bytes,
      "cycles"_a = c.cycles());
}

/// What an executable holds, for dumps and tests.
py::dict inspectImage(const py::bytes& bytes) {
  const std::string_view view(bytes);
  const auto image = engine::Image::deserialise(std::as_bytes(std::span(view)));
  py::list steps;
  for (const auto& step : image->steps) {
    py::list operands;
    for (const auto& o : step.operands)
      operands.append(py::dict("buffer"_a = o.buffer, "type"_a = engine::nameOf(o.type),
                               "shape"_a = o.shape, "strides"_a = o.strides, "offset"_a = o.offset,
                               "access"_a = static_cast<int>(o.access)));
    py::list inner;
    for (const auto& s : step.inner) inner.append(s.kernel);
    steps.append(py::dict("kernel"_a = step.kernel, "inner"_a = inner, "operands"_a = operands,
                          "cost"_a = costDict(step.cost), "name"_a = image->debug[step.debug].name,
                          "source"_a = image->debug[step.debug].source));
  }
  py::list nodes;
  for (const auto& node : image->nodes)
    nodes.append(py::make_tuple(static_cast<int>(node.kind), node.value, node.children));
  py::list buffers;
  for (const auto& b : image->buffers)
    buffers.append(py::make_tuple(static_cast<int>(b.kind), b.bytes, b.offset, b.input, b.output));
  const auto& m = image->memory;
  return py::dict(
      "name"_a = image->signature.name, "num_replicas"_a = image->signature.num_replicas,
      "steps"_a = steps, "nodes"_a = nodes, "buffers"_a = buffers,
      "arena_bytes"_a = image->arena_bytes, "constant_bytes"_a = image->constants.size(),
      "cost"_a = costDict(image->cost()), "tile_capacity"_a = m.tile_capacity,
      "worst_tile"_a = m.worst_tile, "worst_tile_bytes"_a = m.worst_tile_bytes,
      "always_live_bytes"_a = m.always_live_bytes, "peak_live_bytes"_a = m.peak_live_bytes,
      "vertex_state_bytes"_a = m.vertex_state_bytes, "code_bytes"_a = m.code_bytes);
}

}  // namespace

void bindEngine(py::module_& m) {
  auto e = m.def_submodule("engine");
  e.def(
      "buildImage",
      [](poplar::Graph& graph, const poplar::program::Program& prog, const py::dict& signature,
         const std::string& stablehlo, bool out_of_memory_error, const std::string& without) {
        engine::BuildOptions options;
        options.signature = signatureOf(signature);
        options.stablehlo = stablehlo;
        options.mechanisms = engine::Mechanisms::without(without);
        if (out_of_memory_error) options.out_of_memory = engine::OutOfMemory::kError;
        options.log = [](const std::string& message) {
          const py::gil_scoped_acquire acquire;
          py::module_::import("logging").attr("getLogger")("ipujax").attr("warning")("%s", message);
        };
        std::string bytes;
        {
          const py::gil_scoped_release release;
          bytes = engine::buildImage(graph, prog, std::move(options))->serialise();
        }
        return py::bytes(bytes);
      },
      "graph"_a, "program"_a, "signature"_a, "stablehlo"_a, "out_of_memory_error"_a = false,
      "without"_a = "");
  e.def("inspectImage", &inspectImage, "bytes"_a);
}
