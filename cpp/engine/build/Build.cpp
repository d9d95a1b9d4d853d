#include "engine/build/Build.hpp"

#include <cstdio>
#include <sstream>
#include <utility>

#include "engine/build/Draft.hpp"
#include "engine/verify/Verify.hpp"
#include "poplar/Executable.hpp"
#include "poplar/exceptions.hpp"

namespace ipujax::engine {
namespace {

void complete(build::Draft& draft) {
  const Mechanisms& mechanisms = draft.image.mechanisms;
  build::findLiveRanges(draft);
  if (mechanisms.has(Mechanism::kCopies)) build::removeCopies(draft);
  build::accountMemory(draft);
  if (mechanisms.has(Mechanism::kRows)) build::fuseRows(draft);
  if (mechanisms.has(Mechanism::kReductions)) build::fuseReductions(draft);
  build::placeStorages(draft);
  draft.image.clock_hz = draft.graph->target.getTileClockFrequency();
  draft.image.num_tiles = draft.graph->target.getNumTiles();
}

void judgeMemory(const Image& image, bool refuse,
                 const std::function<void(const std::string&)>& log = {}) {
  const std::string report = outOfMemoryReport(image);
  if (report.empty()) return;
  if (refuse) throw poplar::graph_memory_allocation_error(report);
  const std::string message = report + " The IPU Model runs it all the same.";
  log ? log(message) : static_cast<void>(std::fprintf(stderr, "ipujax: %s\n", message.c_str()));
}

/// FNV-1a over the sealed form: names a program, not its version.
std::string fingerprintOf(const Image& image) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto mix = [&](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  };
  mix(image.signature.name);
  mix(image.stablehlo);
  mix(std::to_string(image.steps.size()) + "/" + std::to_string(image.arena_bytes) + "/" +
      std::to_string(image.num_tiles));
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

poplar::program::Sequence loadProgram(poplar::Graph& graph) {
  poplar::program::Sequence load("load");
  auto& variables = graph.impl().variables;
  const std::size_t count = variables.size();
  for (std::uint32_t v = 0; v < count; ++v) {
    if (variables[v].is_constant || variables[v].values.empty()) continue;
    const auto source = graph.impl().addVariable(variables[v].type, variables[v].elements,
                                                 variables[v].map, "initial values");
    variables[source].is_constant = true;
    variables[source].values = variables[v].values;
    const auto whole = [&](std::uint32_t id) {
      return poplar::Tensor(&graph.impl(),
                            std::make_shared<const poplar::View>(poplar::wholeVariable(
                                id, variables[id].type, {variables[id].elements})));
    };
    load.add(poplar::program::Copy(whole(source), whole(v)));
  }
  return load;
}

}  // namespace

std::string outOfMemoryReport(const Image& image) {
  const MemoryAccount& m = image.memory;
  if (m.fits()) return "";
  std::ostringstream os;
  os << "[memory] '" << image.signature.name << "' needs " << m.worst_tile_bytes
     << " bytes on tile " << m.worst_tile << "; a tile has " << m.tile_capacity
     << ". Largest tensors there:";
  const char* separator = " ";
  for (const auto& tensor : m.largest) {
    const DebugEntry& debug = image.debug[tensor.debug];
    os << std::exchange(separator, "; ") << (debug.name.empty() ? "(unnamed)" : debug.name);
    if (!debug.source.empty()) os << " (" << debug.source << ")";
    os << " " << tensor.worst_tile_bytes << " of " << tensor.bytes << " bytes";
  }
  os << ". Use a smaller batch or model, or more tiles.";
  return os.str();
}

std::shared_ptr<const Image> buildImage(poplar::Graph& graph, const poplar::program::Program& prog,
                                        BuildOptions options) {
  const unsigned replicas = graph.getReplicationFactor();
  if (options.signature.num_replicas != replicas) {
    throw poplar::poplar_error("[buildImage] needs a signature of the graph's " +
                               std::to_string(replicas) + " replicas; got " +
                               std::to_string(options.signature.num_replicas) +
                               ". Set num_replicas to the graph's.");
  }
  build::Draft draft;
  draft.image.signature = std::move(options.signature);
  draft.image.stablehlo = std::move(options.stablehlo);
  draft.image.mechanisms = Mechanisms::without(options.options.textOr("engine_without", ""));
  draft.image.signature.output_alias.resize(draft.image.signature.outputs.size(), -1);
  build::flatten(draft, graph.impl(), *prog.node(), {});
  complete(draft);
  draft.image.fingerprint = fingerprintOf(draft.image);
  const bool refuse = options.options.textOr("out_of_memory", "log") == "error";
  judgeMemory(draft.image, refuse, options.log);
  return std::make_shared<const Image>(std::move(draft.image));
}

}  // namespace ipujax::engine

namespace poplar {

namespace {
bool refusesOutOfMemory(const OptionFlags& options) {
  bool refuse = false;
  for (const auto& [name, value] : options) {
    if (name != "debug.outOfMemory" || (value != "log" && value != "error"))
      throw invalid_option("[compileGraph] needs option debug.outOfMemory = log | error; got " +
                           name + " = " + value);
    refuse = value == "error";
  }
  return refuse;
}
}  // namespace

Executable compileGraph(const Graph& graph, ArrayRef<program::Program> progs,
                        const OptionFlags& opt, ProgressFunc progressCallBack,
                        const DebugContext& debugContext) {
  const bool refuse = refusesOutOfMemory(opt);
  if (graph.getReplicationFactor() > 1) {
    throw poplar_error("[compileGraph] needs a graph of one replica; got " +
                       std::to_string(graph.getReplicationFactor()) +
                       ". Run replicated graphs through JAX, whose arrays say what is on which.");
  }
  GraphImpl& impl = graph.impl();
  Graph top = Graph::of(impl);
  ipujax::engine::build::Draft draft;
  ipujax::engine::build::FlattenOptions options;
  options.bind_streams = false;
  options.persistent.assign(impl.variables.size(), true);
  std::vector<std::pair<std::int32_t, program::Program>> cases;
  auto& names = draft.image.entry_points;
  const auto add = [&](std::string name, const program::Program& program) {
    cases.emplace_back(static_cast<std::int32_t>(names.size()), program);
    names.push_back(std::move(name));
  };
  for (std::size_t i = 0; i < progs.size(); ++i) add(std::to_string(i), progs[i]);
  add("load", ipujax::engine::loadProgram(top));
  const auto streamFor = [&](const std::string& handle, const Tensor& t, bool to_device) {
    for (const auto& stream : impl.streams) {
      if (stream.handle() == handle) return stream;  // of an earlier compile of this graph
    }
    return to_device ? top.addHostToDeviceFIFO(handle, t.elementType(), t.numElements())
                     : top.addDeviceToHostFIFO(handle, t.elementType(), t.numElements());
  };
  for (const auto& [handle, tensor] : impl.host_writes) {
    const std::string name = "write:" + handle;
    add(name, program::Sequence({program::Copy(streamFor(name, tensor, true), tensor)}));
  }
  for (const auto& [handle, tensor] : impl.host_reads) {
    const std::string name = "read:" + handle;
    add(name, program::Sequence({program::Copy(tensor, streamFor(name, tensor, false))}));
  }
  const Tensor selector = impl.addLinear(INT, {}, "entry point");
  const program::Sequence root({program::Switch(selector, cases)});
  auto& signature = draft.image.signature;
  signature.name = debugContext.getPathName().empty() ? "graph" : debugContext.getPathName();
  signature.inputs.push_back({"int32", {}, 4, {}});
  if (progressCallBack) progressCallBack(0, 1);
  options.selector = static_cast<std::int32_t>(selector.view()->variable);
  ipujax::engine::build::flatten(draft, impl, *root.node(), options);
  ipujax::engine::complete(draft);
  for (const auto& stream : impl.streams) {
    draft.image.streams.push_back(
        {stream.handle(),
         stream.numElements() * ipujax::engine::sizeOf(stream.elementType().element()),
         stream.type() == DataStreamType::HostToDeviceFIFO});
  }
  ipujax::engine::verify(draft.image);
  ipujax::engine::judgeMemory(draft.image, refuse);
  if (progressCallBack) progressCallBack(1, 1);
  return Executable(std::make_shared<const ipujax::engine::Image>(std::move(draft.image)));
}

}  // namespace poplar
