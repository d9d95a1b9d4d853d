#include "bindings/backend.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "backends/poplar/Container.hpp"
#include "backends/poplar/Interrupts.hpp"
#include "backends/poplar/Machines.hpp"
#include "poputil/TileMapping.hpp"
#include "popx/Map.hpp"
#include "popx/SdkFolder.hpp"

namespace sdk = ipujax::poplar_backend;
namespace runtime = ipujax::runtime;

namespace {

using Description = py::typing::Dict<py::str, Any>;
using runtime::Signature;

std::vector<std::string> machineNames() {
  std::vector<std::string> names;
  for (const auto& machine : sdk::machines()) names.push_back(machine.name);
  return names;
}

/// Ignores the model's figures for memories and links: here the machine has its own.
poplar::Target createTarget(const std::string& machine, unsigned num_ipus, unsigned tiles_per_ipu,
                            unsigned /*streaming_gigabytes*/, double /*host_gigabytes_per_second*/,
                            double /*host_microseconds*/) {
  const auto& arch = sdk::machineByName(machine).arch;
  if (tiles_per_ipu == 0) return poplar::Target::createIPUTarget(num_ipus, arch);
  return poplar::Target::createIPUTarget(num_ipus, tiles_per_ipu, arch);
}

// A host function as Python passes it: handle, id, arguments and results as (dtype, shape).
using Array = std::pair<std::string, std::vector<std::int64_t>>;
using HostCall = std::tuple<std::string, std::string, std::vector<Array>, std::vector<Array>>;

// Index, handle, entries.
using RemoteArray = std::tuple<std::uint32_t, std::string, std::uint64_t>;

std::vector<sdk::HostArraySpec> arraysOf(const std::vector<Array>& arrays) {
  std::vector<sdk::HostArraySpec> specs;
  for (const auto& [dtype, shape] : arrays) specs.push_back({dtype, shape});
  return specs;
}

py::bytes buildExecutable(const Graph& graph, const poplar::program::Program& program,
                          const Signature& signature, const py::bytes& stablehlo,
                          const std::vector<HostCall>& host_calls,
                          const std::vector<RemoteArray>& remote_inputs,
                          const std::vector<RemoteArray>& remote_outputs,
                          const std::vector<std::uint32_t>& kept_inputs,
                          const std::map<std::string, std::string>& engine_options) {
  sdk::Container container;
  container.signature = signature;
  container.text = stablehlo;
  container.kept_inputs = kept_inputs;
  for (const auto& [handle, id, arguments, results] : host_calls)
    container.host_calls.push_back({handle, id, arraysOf(arguments), arraysOf(results)});
  for (const auto& [index, handle, entries] : remote_inputs)
    container.remote_inputs.push_back({index, handle, entries});
  for (const auto& [index, handle, entries] : remote_outputs)
    container.remote_outputs.push_back({index, handle, entries});
  poplar::OptionFlags options;
  for (const auto& [name, value] : engine_options) options.set(name, value);
  std::string bytes;
  {
    const py::gil_scoped_release release;
    bytes = sdk::compile(graph, program, std::move(container), options);
  }
  return bytes;
}

/// What is known of an executable; Poplar's own profile has the rest.
Description inspectImage(const py::bytes& bytes) {
  const std::string_view view(bytes);
  const auto container = sdk::Container::open(std::as_bytes(std::span(view)));
  const auto kinds = [](const std::vector<runtime::TensorSpec>& specs) {
    py::list names;
    for (const auto& spec : specs) names.append(runtime::nameOf(spec.memory));
    return names;
  };
  return py::dict("name"_a = container.signature.name,
                  "num_replicas"_a = container.signature.num_replicas, "steps"_a = py::list(),
                  "host_functions"_a = container.host_calls.size(),
                  "poplar_bytes"_a = container.executable.size(),
                  "input_memory_kinds"_a = kinds(container.signature.inputs),
                  "output_memory_kinds"_a = kinds(container.signature.outputs));
}

Description profileImage(const py::bytes& /*bytes*/) {
  throw runtime::NotSupportedError(
      "[profileImage] needs the IPU Model's own build, which accounts for programs; got a build "
      "against a Poplar SDK. Set POPLAR_ENGINE_OPTIONS to have a report for PopVision, or unset "
      "IPUJAX_EXTENSION.");
}

/// The function name of places in the user's program, which Poplar requires.
constexpr std::string_view kProgram = "jax";

/// The location for "file.py:31"; none for other texts. Poplar keeps the pointer, so file names
/// live as long as the process.
poplar::SourceLocation placeOf(const std::string& source) {
  static std::set<std::string> files;  // under the GIL
  const std::size_t colon = source.rfind(':');
  unsigned line = 0;
  if (colon == std::string::npos) return {};
  const char* const end = source.data() + source.size();
  if (std::from_chars(source.data() + colon + 1, end, line).ptr != end) return {};
  return {kProgram.data(), files.insert(source.substr(0, colon)).first->c_str(), line};
}

template <class T>
Tensor constantOf(Graph& graph, Type type, const Shape& shape, const void* values,
                  const DebugContext& debug) {
  std::size_t n = 1;
  for (const std::size_t size : shape) n *= size;
  return graph.addConstant<T>(type, shape, ArrayRef<T>(static_cast<const T*>(values), n), debug);
}

}  // namespace

/// The line is in Poplar's source location and also in the name, because profiles and errors only
/// show names.
DebugContext backend::debugOf(std::string name, std::string source) {
  source.resize(std::min(source.find('\n'), source.size()));  // only the model's profiles have more
  const poplar::SourceLocation place = placeOf(source);
  if (!place.isValid()) return {std::move(name), place};
  return {name + "@" + source, place};
}

std::string backend::sourceOf(const DebugContext& debug) {
  const auto& place = debug.getLocation();
  if (!place.isValid() || std::string(place.getFunctionName()) != kProgram) return {};
  return std::string(place.getFileName()) + ":" + std::to_string(place.getLineNumber());
}

Tensor backend::addConstant(Graph& graph, Type type, const Shape& shape, const void* values,
                            const DebugContext& debug) {
  using Make = Tensor (*)(Graph&, Type, const Shape&, const void*, const DebugContext&);
  const std::pair<Type, Make> makers[] = {
      {poplar::BOOL, &constantOf<bool>},
      {poplar::CHAR, &constantOf<char>},
      {poplar::SIGNED_CHAR, &constantOf<signed char>},
      {poplar::UNSIGNED_CHAR, &constantOf<unsigned char>},
      {poplar::SHORT, &constantOf<short>},
      {poplar::UNSIGNED_SHORT, &constantOf<unsigned short>},
      {poplar::INT, &constantOf<int>},
      {poplar::UNSIGNED_INT, &constantOf<unsigned>},
      {poplar::LONGLONG, &constantOf<long long>},
      {poplar::UNSIGNED_LONGLONG, &constantOf<unsigned long long>},
      {poplar::FLOAT, &constantOf<float>}};
  std::optional<Tensor> t;
  if (type == poplar::HALF) {
    t = graph.addConstantHalf(type, shape, static_cast<const std::uint16_t*>(values), debug);
  } else {
    for (const auto& [each, make] : makers)
      if (!t && each == type) t = make(graph, type, shape, values, debug);
  }
  if (!t) {
    throw runtime::NotSupportedError("[constant] needs a type that Poplar has constants of; got " +
                                     type.toString() + ". Use 32 bits or fewer.");
  }
  poputil::mapTensorLinearly(graph, *t);
  return *t;
}

Tensor backend::map(Graph& graph, const popx::expr::Expr& expr, const Tensors& ts, Sequence& prog,
                    const DebugContext& debug) {
  return popx::map(graph, {expr}, ts, prog, debug).at(0);
}

void backend::mapInPlace(Graph& graph, const popx::expr::Expr& expr, const Tensors& ts,
                         Sequence& prog, const DebugContext& debug) {
  prog.add(poplar::program::Copy(map(graph, expr, ts, prog, debug), ts.at(0), false, debug));
}

void backend::fill(Graph& graph, const Tensor& t, Sequence& prog, const popx::expr::Const& value,
                   const DebugContext& debug) {
  mapInPlace(graph, value, {t}, prog, debug);
}

void backend::bind(py::module_& m) {
  sdk::relayInterrupts();
  auto poplar = submodule(m, "poplar");
  poplar.def("machineNames", &machineNames);
  poplar.def("createTarget", &createTarget, "machine"_a, "num_ipus"_a, "tiles_per_ipu"_a = 0,
             "streaming_gigabytes"_a = 0, "host_gigabytes_per_second"_a = 0.0,
             "host_microseconds"_a = -1.0);
  submodule(m, "popx").def("sdkFolder", &popx::sdkFolder);
  auto e = submodule(m, "engine");
  py::register_exception<runtime::NotSupportedError>(e, "NotSupportedError",
                                                     PyExc_NotImplementedError);
  e.def("buildExecutable", &buildExecutable, "graph"_a, "program"_a, "signature"_a, "stablehlo"_a,
        "host_calls"_a, "remote_inputs"_a, "remote_outputs"_a, "kept_inputs"_a, "engine_options"_a);
  e.def("inspectImage", &inspectImage, "image"_a);
  e.def("profileImage", &profileImage, "image"_a);
  e.def("mechanismNames", [] { return std::vector<std::string>(); });
}
