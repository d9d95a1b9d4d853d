#include <pybind11/numpy.h>

#include <map>

#include "bindings/bindings.hpp"
#include "bindings/model/bindings.hpp"
#include "engine/SourceText.hpp"
#include "engine/account/Times.hpp"
#include "engine/build/Build.hpp"
#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"
#include "poplar/internal/EngineOptionNames.hpp"
#include "poplar/internal/EngineOptions.hpp"
#include "poplar/internal/EngineProfile.hpp"

namespace engine = ipujax::engine;

namespace {

using Description = py::typing::Dict<py::str, Any>;
using engine::Signature;
using engine::TensorSpec;

Description costDict(const engine::Cost& c) {
  return py::dict("compute_cycles"_a = c.compute_cycles,
                  "mean_compute_cycles"_a = c.mean_compute_cycles,
                  "exchange_cycles"_a = c.exchange_cycles, "sync_cycles"_a = c.sync_cycles,
                  "link_cycles"_a = c.link_cycles, "host_cycles"_a = c.host_cycles,
                  "host_bytes"_a = c.host_bytes, "exchange_bytes"_a = c.exchange_bytes,
                  "repeated_exchange_cycles"_a = c.repeated_exchange_cycles,
                  "repeated_sync_cycles"_a = c.repeated_sync_cycles, "link_bytes"_a = c.link_bytes,
                  "flops"_a = c.flops, "temporary_bytes"_a = c.temporary_bytes,
                  "vertex_state_bytes"_a = c.vertex_state_bytes, "code_bytes"_a = c.code_bytes,
                  "cycles"_a = c.cycles());
}

/// The contents of an executable, for dumps and tests.
Description inspectImage(const py::bytes& bytes) {
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
                          "source"_a = engine::lineOf(image->debug[step.debug].source)));
  }
  py::list nodes;
  for (const auto& node : image->nodes)
    nodes.append(py::make_tuple(static_cast<int>(node.kind), node.value, node.children));
  py::list buffers;
  for (const auto& b : image->buffers)
    buffers.append(py::make_tuple(static_cast<int>(b.kind), b.bytes, b.offset, b.input, b.output));
  const auto& m = image->memory;
  const auto kinds = [](const std::vector<TensorSpec>& specs) {
    py::list names;
    for (const auto& spec : specs) names.append(engine::nameOf(spec.memory));
    return names;
  };
  return py::dict(
      "name"_a = image->signature.name, "num_replicas"_a = image->signature.num_replicas,
      "steps"_a = steps, "nodes"_a = nodes, "buffers"_a = buffers,
      "arena_bytes"_a = image->arena_bytes, "constant_bytes"_a = image->constants.size(),
      "cost"_a = costDict(image->cost()), "tile_capacity"_a = m.tile_capacity,
      "worst_tile"_a = m.worst_tile, "worst_tile_bytes"_a = m.worst_tile_bytes,
      "always_live_bytes"_a = m.always_live_bytes, "peak_live_bytes"_a = m.peak_live_bytes,
      "vertex_state_bytes"_a = m.vertex_state_bytes, "code_bytes"_a = m.code_bytes,
      "code_capacity"_a = m.code_capacity, "streaming_bytes"_a = image->streaming.bytes,
      "input_memory_kinds"_a = kinds(image->signature.inputs),
      "output_memory_kinds"_a = kinds(image->signature.outputs));
}

/// Text for display: bytes that are not UTF-8 become replacement characters.
py::str shown(const std::string& text) {
  const auto size = static_cast<Py_ssize_t>(text.size());
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(text.data(), size, "replace"));
}

py::list shown(const std::vector<std::string>& texts) {
  py::list list;
  for (const auto& text : texts) list.append(shown(text));
  return list;
}

/// Columns of numbers as one NumPy array, because large programs have many steps.
template <class T, class F>
py::array_t<double> columns(const std::vector<T>& rows, const F& values) {
  const std::size_t width = rows.empty() ? 0 : values(rows[0]).size();
  py::array_t<double> table({rows.size(), width});
  double* next = table.mutable_data();
  for (const T& row : rows)
    for (const double value : values(row)) *next++ = value;
  return table;
}

py::list profileTree(const engine::Image& image) {
  py::list nodes;
  for (const auto& node : image.nodes)
    nodes.append(py::make_tuple(static_cast<int>(node.kind), node.value, node.children));
  return nodes;
}

py::list profileSteps(const engine::Image& image) {
  py::list steps;
  for (const auto& s : image.steps) {
    const auto& debug = image.debug[s.debug];
    py::list operands;
    for (const auto& o : s.operands) {
      if (operands.size() == 8) break;  // enough to recognise a step
      operands.append(py::make_tuple(engine::nameOf(o.type), o.shape));
    }
    steps.append(py::make_tuple(shown(s.kernel), shown(debug.name), shown(debug.source),
                                costDict(s.cost), operands, shown(s.attributes.textOr("plan", "")),
                                engine::roleOf(s) == engine::KernelRole::kCollective));
  }
  return steps;
}

py::list profileTensors(const engine::Image& image) {
  py::list tensors;
  for (const auto& t : image.profile->tensors)
    tensors.append(py::make_tuple(shown(image.debug[t.debug].name),
                                  shown(image.debug[t.debug].source), t.category,
                                  engine::nameOf(t.type), t.shape, t.bytes, t.peak_tile_bytes,
                                  t.live_at_peak, t.always_live));
  return tensors;
}

py::list profileIpus(const engine::Image& image) {
  py::list ipus;
  for (std::size_t i = 0; i < image.ipus.size() && i < image.profile->ipus.size(); ++i) {
    const auto& a = image.ipus[i];
    const auto& tiles = image.profile->ipus[i];
    ipus.append(
        py::dict("compute_cycles"_a = a.compute_cycles, "exchange_cycles"_a = a.exchange_cycles,
                 "link_cycles"_a = a.link_cycles, "host_cycles"_a = a.host_cycles + a.io_cycles,
                 "idle_cycles"_a = a.idle_cycles, "fullest_tile_bytes"_a = a.worst_tile_bytes,
                 "fullest_tile"_a = tiles.fullest_tile, "tile_bytes"_a = tiles.tile_bytes));
  }
  return ipus;
}

/// Where an executable's time and memory go, as ipujax.report shows.
Description profileImage(const py::bytes& bytes) {
  const std::string_view view(bytes);
  const auto image = engine::Image::deserialise(std::as_bytes(std::span(view)));
  if (!image->profile)
    throw engine::ImageError(
        "[profileImage] needs an executable with a profile; got one without. Compile it with "
        "ipu_profile=true.");
  const auto& profile = *image->profile;
  using Numbers = std::vector<double>;
  const auto slice = [](const engine::Slice& s) {
    return Numbers{static_cast<double>(s.node),
                   static_cast<double>(s.ipus),
                   s.times,
                   s.begin_cycles,
                   s.cycles,
                   s.compute_cycles,
                   s.exchange_cycles,
                   s.sync_cycles,
                   s.link_cycles,
                   s.host_cycles};
  };
  const auto live = [](const engine::LivePoint& p) {
    return Numbers{static_cast<double>(p.node), static_cast<double>(p.live_bytes),
                   static_cast<double>(p.fullest_tile_bytes)};
  };
  return py::dict(
      "name"_a = shown(image->signature.name), "num_replicas"_a = image->signature.num_replicas,
      "clock_hz"_a = image->clock_hz, "elapsed_cycles"_a = image->elapsedCycles(),
      "assumed_trip_count"_a = image->assumed_trip_count, "nodes"_a = profileTree(*image),
      "times"_a = engine::timesRun(*image), "steps"_a = profileSteps(*image),
      "slices"_a = columns(profile.slices, slice), "live"_a = columns(profile.live, live),
      "categories"_a = shown(profile.categories), "tensors"_a = profileTensors(*image),
      "ipus"_a = profileIpus(*image), "cost"_a = costDict(image->cost()),
      "tile_capacity"_a = image->memory.tile_capacity,
      "code_capacity"_a = image->memory.code_capacity,
      "always_live_bytes"_a = image->memory.always_live_bytes,
      "peak_live_bytes"_a = image->memory.peak_live_bytes,
      "half_flops_per_cycle"_a = profile.half_flops_per_cycle,
      "float_flops_per_cycle"_a = profile.float_flops_per_cycle);
}

poplar::OptionFlags flagsOf(const std::map<std::string, std::string>& options) {
  poplar::OptionFlags flags;
  for (const auto& [name, value] : options) flags.set(name, value);
  return flags;
}

/// A report of one run for pva::openReport, from the cost account.
py::bytes reportOfImage(const py::bytes& bytes, const std::map<std::string, std::string>& options) {
  const std::string_view view = bytes;
  const auto image = engine::Image::deserialise(std::as_bytes(std::span(view)));
  poplar::internal::RunLog log;
  log.add(image->signature.name, "0", image->cost(), {});
  return log.report(*image, flagsOf(options));
}

}  // namespace

void bindEngine(py::module_& m) {
  using Options = std::map<std::string, engine::Attributes::Value>;
  auto e = submodule(m, "engine");
  e.def(
      "buildImage",
      [](poplar::Graph& graph, const poplar::program::Program& prog, const Signature& signature,
         const py::bytes& stablehlo, const Options& options) {
        engine::BuildOptions build;
        build.signature = signature;
        build.stablehlo = stablehlo;
        for (const auto& [name, value] : options) build.options.set(name, value);
        std::string bytes, report;
        {
          const py::gil_scoped_release release;
          const auto image = engine::buildImage(graph, prog, std::move(build));
          bytes = image->serialise();
          report = engine::outOfMemoryReport(*image);
        }
        return std::pair<py::bytes, std::string>(bytes, report);
      },
      "graph"_a, "program"_a, "signature"_a, "stablehlo"_a = py::bytes(), "options"_a = Options());
  // The meaning of Poplar's options here, and all those without effect. Throws for wrong ones.
  e.def(
      "engineOptions",
      [](const std::map<std::string, std::string>& options) -> Description {
        const auto found = poplar::internal::engineOptionsAlone(flagsOf(options));
        return py::dict("refuses_too_large"_a = found.refuses_too_large,
                        "float_exceptions"_a = found.float_exceptions,
                        "report_folder"_a = found.reports ? found.report_folder : "",
                        "without_effect"_a = found.without_effect);
      },
      "options"_a);
  // Each option of engines that Poplar documents, and whether it acts on an Engine of the model.
  e.def("engineOptionNames", [] {
    std::map<std::string, bool> names;
    for (const auto& each : poplar::internal::engineOptionNames())
      names.emplace(each.name, each.acts);
    return names;
  });
  e.def("reportOfImage", &reportOfImage, "image"_a, "options"_a);
  e.def("inspectImage", &inspectImage, "image"_a);
  e.def("profileImage", &profileImage, "image"_a);
  e.def("mechanismNames", [] {
    const auto& names = engine::kMechanismNames;
    return std::vector<std::string>(names.begin(), names.end());
  });
}
