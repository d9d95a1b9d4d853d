#include "engine/build/Build.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <utility>

#include "engine/Errors.hpp"
#include "engine/SourceText.hpp"
#include "engine/build/Draft.hpp"
#include "engine/codelets/VertexState.hpp"
#include "engine/graph/RemoteCopy.hpp"
#include "engine/run/FloatTraps.hpp"
#include "engine/verify/Verify.hpp"

namespace ipujax::engine {
namespace {

void complete(build::Draft& draft) {
  const Mechanisms& mechanisms = draft.image.mechanisms;
  const bool fuses = !hasFloatTraps(draft.image);  // else the results of each step are checked
  build::findLiveRanges(draft);
  build::findResidents(draft);
  if (mechanisms.has(Mechanism::kCopies)) build::removeCopies(draft);
  build::accountMemory(draft);
  build::accountTime(draft);
  if (mechanisms.has(Mechanism::kTurns)) build::turnFifos(draft);
  if (fuses && mechanisms.has(Mechanism::kRows)) build::fuseRows(draft);
  if (fuses && mechanisms.has(Mechanism::kReductions)) build::fuseReductions(draft);
  if (mechanisms.has(Mechanism::kPieces)) build::makePieces(draft);
  build::placeStorages(draft);
  draft.image.clock_hz = draft.graph->system.machine.clock_hz;
  draft.image.num_tiles = draft.graph->system.numTiles();
}

void judgeMemory(const Image& image, bool refuse) {
  const std::string report = outOfMemoryReport(image);
  if (report.empty()) return;
  if (refuse) throw graph_memory_allocation_error(report);
  std::fprintf(stderr, "ipujax: %s The IPU Model runs it all the same.\n", report.c_str());
}

/// FNV-1a over the name, the StableHLO text and some sizes: names a program, not its version.
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

build::HostOptions hostOptions(const Attributes& options) {
  const auto number = [&](const char* name, unsigned otherwise) {
    return options.has(name) ? static_cast<unsigned>(options.integer(name)) : otherwise;
  };
  build::HostOptions host;
  host.io_tiles = number("num_io_tiles", 0);
  host.overlaps = host.io_tiles > 0 && number("place_ops_on_io_tiles", 0) != 0;
  host.prefetch_depth = number("prefetch_depth", host.prefetch_depth);
  host.rearranges_on_host = number("rearrange_copies_on_host", 0) != 0;
  return host;
}

ViewPtr wholeOf(const GraphImpl& graph, std::uint32_t id) {
  const Variable& variable = graph.variables[id];
  return share(wholeVariable(id, variable.type, {variable.elements}));
}

/// Copies the initial values of all variables that have some.
ProgramNodePtr loadProgram(GraphImpl& graph) {
  auto load = std::make_shared<ProgramNode>();
  auto& variables = graph.variables;
  const std::size_t count = variables.size();
  for (std::uint32_t v = 0; v < count; ++v) {
    if (variables[v].is_constant || variables[v].values.empty()) continue;
    const auto source = graph.addVariable(variables[v].type, variables[v].elements,
                                          variables[v].map, "initial values");
    variables[source].is_constant = true;
    variables[source].values = variables[v].values;
    appendCopy(graph, *load, wholeOf(graph, source), wholeOf(graph, v), {});
  }
  return load;
}

/// Moves all of a tensor through the stream `name`, which an earlier build of the graph may have
/// made.
ProgramNodePtr streamProgram(GraphImpl& graph, const std::string& name, const ViewPtr& tensor,
                             bool to_device) {
  auto& streams = graph.streams;
  auto stream = std::find_if(streams.begin(), streams.end(),
                             [&](const Stream& known) { return known.handle == name; });
  if (stream == streams.end()) {
    const auto id = static_cast<std::uint32_t>(streams.size());
    Stream made{id, name, tensor->type, tensor->numElements(), to_device};
    made.is_in_runs = false;
    stream = streams.insert(stream, std::move(made));
  }
  auto node = std::make_shared<ProgramNode>();
  node->kind = to_device ? ProgramKind::kStreamIn : ProgramKind::kStreamOut;
  node->view = tensor;
  node->ids = {stream->id};
  return node;
}

/// Moves one entry of a remote buffer to or from the host: the stream "<name>.entry" has its
/// number, the stream `name` its data. This takes no IPU time.
ProgramNodePtr remoteProgram(GraphImpl& graph, const std::string& name, const ViewPtr& buffer,
                             bool to_remote) {
  const ViewPtr entry = graph.addRemote(ElementType::kInt32, {1}, name);
  const ViewPtr row = graph.addRemote(buffer->type, {1, buffer->shape[1]}, name);
  auto program = std::make_shared<ProgramNode>();
  program->children.push_back(streamProgram(graph, name + ".entry", entry, true));
  if (to_remote) program->children.push_back(streamProgram(graph, name, row, true));
  appendRemoteCopy({graph, graph.system}, *program, buffer, row, entry, to_remote, Outside::kClamp,
                   name);
  program->children.back()->step.cost = Cost();
  if (!to_remote) program->children.push_back(streamProgram(graph, name, row, false));
  return program;
}

std::string codeReport(const Image& image) {
  const MemoryAccount& m = image.memory;
  return "[memory] '" + image.signature.name + "' needs " + std::to_string(m.code_bytes) +
         " bytes of code on a tile; a tile can run code in " + std::to_string(m.code_capacity) +
         R"( bytes of its memory. Set ipu_outline="auto" to keep equal parts once, or use loops.)";
}

std::string fullTileReport(const Image& image) {
  const MemoryAccount& m = image.memory;
  std::ostringstream os;
  os << "[memory] '" << image.signature.name << "' needs " << m.worst_tile_bytes
     << " bytes on tile " << m.worst_tile << "; a tile has " << m.tile_capacity
     << ". Largest tensors there:";
  const char* separator = " ";
  for (const auto& tensor : m.largest) {
    const DebugEntry& debug = image.debug[tensor.debug];
    const std::string name = debug.name.empty() ? "(unnamed)" : debug.name;
    os << std::exchange(separator, "; ") << placeOf(name, debug.source);
    os << " " << tensor.worst_tile_bytes << " of " << tensor.bytes << " bytes";
    if (tensor.count > 1) os << " each, " << tensor.count << " tensors";
  }
  os << ". Use a smaller batch or model, or more tiles.";
  return os.str();
}

}  // namespace

std::string outOfMemoryReport(const Image& image) {
  if (image.memory.worst_tile_bytes > image.memory.tile_capacity) return fullTileReport(image);
  if (!image.memory.codeFits()) return codeReport(image);
  const StreamingAccount& streaming = image.streaming;
  if (streaming.fits()) return "";
  return "[memory] '" + image.signature.name + "' needs " + std::to_string(streaming.bytes) +
         " bytes of streaming memory; a device has " + std::to_string(streaming.capacity) +
         ". Keep less in the host's memory, or use more IPUs.";
}

std::shared_ptr<const Image> buildImage(const GraphScope& graph, const ProgramNode& program,
                                        BuildOptions options) {
  if (options.signature.num_replicas != graph.impl.replication_factor) {
    throw poplar_error("[buildImage] needs a signature of the graph's " +
                       std::to_string(graph.impl.replication_factor) + " replicas; got " +
                       std::to_string(options.signature.num_replicas) +
                       ". Set num_replicas to the graph's.");
  }
  build::Draft draft;
  draft.image.signature = std::move(options.signature);
  draft.image.stablehlo = std::move(options.stablehlo);
  draft.image.mechanisms = Mechanisms::without(options.options.textOr("engine_without", ""));
  draft.image.signature.output_alias.resize(draft.image.signature.outputs.size(), -1);
  constexpr const char* kCopiesBytes = "maximum_inter_ipu_copies_buffer_size";
  if (options.options.has(kCopiesBytes))
    draft.inter_ipu_copies_bytes =
        static_cast<std::uint64_t>(options.options.integer(kCopiesBytes));
  constexpr const char* kTripCount = "assumed_trip_count";
  if (options.options.has(kTripCount))
    draft.image.assumed_trip_count =
        static_cast<std::uint64_t>(options.options.integer(kTripCount));
  draft.host = hostOptions(options.options);
  if (options.options.has("profile") && options.options.integer("profile") != 0)
    draft.image.profile.emplace();
  build::flatten(draft, graph.impl, program, {});
  complete(draft);
  draft.image.fingerprint = fingerprintOf(draft.image);
  return std::make_shared<const Image>(std::move(draft.image));
}

std::shared_ptr<const Image> buildEntryPoints(GraphImpl& graph,
                                              const std::vector<ProgramNodePtr>& programs,
                                              const std::string& name,
                                              const EntryOptions& entry_options) {
  build::Draft draft;
  draft.image.profile.emplace();
  graph.parts = {};
  graph.makeParts();
  keepVertexStates(graph);
  build::FlattenOptions options;
  options.bind_streams = false;
  options.float_traps = maskOf(entry_options.traps);
  options.persistent.assign(graph.variables.size(), true);
  ProgramNode root;
  root.kind = ProgramKind::kSwitch;
  auto& names = draft.image.entry_points;
  const auto add = [&](std::string entry, ProgramNodePtr program) {
    root.selectors.push_back(static_cast<std::int64_t>(names.size()));
    root.children.push_back(std::move(program));
    names.push_back(std::move(entry));
  };
  for (std::size_t i = 0; i < programs.size(); ++i) add(std::to_string(i), programs[i]);
  add("load", loadProgram(graph));
  for (const auto& [handle, tensor] : graph.host_writes)
    add("write:" + handle, streamProgram(graph, "write:" + handle, tensor, true));
  for (const auto& [handle, tensor] : graph.host_reads)
    add("read:" + handle, streamProgram(graph, "read:" + handle, tensor, false));
  for (const auto& [handle, buffer] : graph.remote_buffers) {
    add("to_remote:" + handle, remoteProgram(graph, "to_remote:" + handle, buffer, true));
    add("from_remote:" + handle, remoteProgram(graph, "from_remote:" + handle, buffer, false));
  }
  root.children.push_back(std::make_shared<ProgramNode>());
  root.view = graph.addLinear(ElementType::kInt32, {}, "entry point");
  draft.image.signature.name = name;
  draft.image.signature.num_replicas = graph.replication_factor;
  draft.image.signature.inputs.push_back({"int32", {}, 4, {}});
  options.selector = static_cast<std::int32_t>(root.view->variable);
  build::flatten(draft, graph, root, options);
  complete(draft);
  for (const Stream& stream : graph.streams) {
    draft.image.streams.push_back({stream.handle, stream.elements * sizeOf(stream.type),
                                   stream.to_device, stream.broadcasts, stream.parts});
  }
  verify(draft.image);
  judgeMemory(draft.image, entry_options.refuse_too_large);
  return std::make_shared<const Image>(std::move(draft.image));
}

}  // namespace ipujax::engine
