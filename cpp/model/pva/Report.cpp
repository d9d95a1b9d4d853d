#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>

#include "engine/account/VertexCounts.hpp"
#include "engine/image/Image.hpp"
#include "poplar/Engine.hpp"
#include "poplar/Version.hpp"
#include "poplar/exceptions.hpp"
#include "pva/internal/Data.hpp"
#include "pva/pva.hpp"

namespace pva {

using ipujax::engine::Image;
using ipujax::engine::Node;
using ipujax::engine::NodeKind;
using ipujax::engine::TilePart;

namespace {

constexpr std::string_view kHead = "ipujax profile 1\n";

[[noreturn]] void noEdges() {
  throw poplar::poplar_error(
      "[pva] needs edges; got a report of the IPU Model, which keeps none. Read vertices, compute "
      "sets, cycles and memory.");
}

[[noreturn]] void notAReport(const std::string& where) {
  throw poplar::file_load_error("[pva] needs a report of the IPU Model; got " + where +
                                ". Run an Engine with autoReport.all = true.");
}

bool isPattern(const std::string& text) {
  try {
    const std::regex pattern(text);
    return true;
  } catch (const std::regex_error&) {
    return false;
  }
}

/// Appends the steps below a node in program order, with the cycles of all their executions, from
/// the clock at `now` on. Takes the branch that lasts longest.
void collect(const DataPtr& data, const Data::Run& run, std::uint32_t id, double times,
             std::uint64_t& now, std::vector<ExecutionStep>& steps) {
  const Image& image = *data->image;
  const Node& node = image.nodes[id];
  if (node.kind == NodeKind::kStep) {
    const std::uint64_t cycles = rounded(times * image.steps[node.value].cost.cycles());
    steps.emplace_back(data, programOf(data, id), now, cycles);
    now += cycles;
    return;
  }
  if (node.kind == NodeKind::kIf || node.kind == NodeKind::kSwitch) {
    const auto taken = std::ranges::max_element(
        node.children, {}, [&](auto child) { return costOf(image, child, run.trips).cycles(); });
    if (taken != node.children.end()) collect(data, run, *taken, times, now, steps);
    return;
  }
  if (node.kind == NodeKind::kRepeatWhile) {  // the condition is computed once more
    const double trips = data->tripsOf(run, id);
    collect(data, run, node.children[0], times * (trips + 1), now, steps);
    return collect(data, run, node.children[1], times * trips, now, steps);
  }
  if (node.kind == NodeKind::kRepeat) times *= static_cast<double>(node.value);
  for (const auto child : node.children) collect(data, run, child, times, now, steps);
}

/// Appends the steps of a run.
void addSteps(const DataPtr& data, const Data::Run& run, std::uint64_t& now,
              std::vector<ExecutionStep>& steps) {
  if (const auto root = data->programOf(run.entry)) collect(data, run, *root, 1, now, steps);
}

/// By node, a bit for each IPU that takes part in it or in nodes below it.
std::uint64_t addIpus(const Image& image, std::uint32_t id, std::vector<std::uint64_t>& ipus) {
  for (const auto child : image.nodes[id].children) ipus[id] |= addIpus(image, child, ipus);
  return ipus[id];
}
std::vector<std::uint64_t> ipusByNode(const Image& image) {
  if (image.ipus.size() < 2 || !image.profile || image.profile->slices.empty()) return {};
  std::vector<std::uint64_t> ipus(image.nodes.size());
  for (const auto& slice : image.profile->slices)
    if (slice.node < ipus.size()) ipus[slice.node] |= std::max<std::uint64_t>(slice.ipus, 1);
  addIpus(image, 0, ipus);
  return ipus;
}

/// Reads "<node> <mean iterations>" of a loop; false for other text.
bool readTrips(const std::string& line, std::map<std::uint32_t, double>& trips) {
  std::istringstream in(line);
  std::uint32_t node = 0;
  double mean = 0;
  if (!(in >> node >> mean) || !(mean >= 0 && mean < 0x1p63)) return false;
  trips[node] = mean;
  return true;
}

std::vector<VertexInstance> instancesOf(const ipujax::engine::VertexCounts& vertices) {
  std::vector<VertexInstance> instances;
  for (const auto& [type, each] : vertices) instances.emplace_back(type, each.count);
  return instances;
}

ComputeSet computeSetOf(const DataPtr& data, std::size_t step) {
  const auto& desc = data->image->steps[step];
  return {data, data->nameOf(desc.debug), rounded(desc.cost.compute_cycles), step};
}

}  // namespace

ProgramPtr programOf(const DataPtr& data, std::size_t id) {
  const Node& node = data->image->nodes[id];
  switch (node.kind) {
    case NodeKind::kSequence:
      return std::make_shared<SequenceProgram>(data, id);
    case NodeKind::kRepeat:
      return std::make_shared<RepeatProgram>(data, id);
    case NodeKind::kRepeatWhile:
      return std::make_shared<RepeatWhileProgram>(data, id);
    case NodeKind::kIf:
      return std::make_shared<IfProgram>(data, id);
    case NodeKind::kSwitch:
      return std::make_shared<SwitchProgram>(data, id);
    case NodeKind::kError:
      return std::make_shared<AbortOnConditionProgram>(data, id);
    case NodeKind::kStep:
      break;
  }
  const auto& cost = data->image->steps[node.value].cost;
  if (cost.compute_cycles > 0) return std::make_shared<OnTileExecuteProgram>(data, id);
  if (cost.host_cycles > 0) return std::make_shared<StreamCopyMidProgram>(data, id);
  return std::make_shared<DoExchangeProgram>(data, id);
}

std::optional<std::uint32_t> Data::programOf(const std::string& entry) const {
  if (image->entry_points.empty() && !image->nodes.empty()) return 0;  // a program of JAX
  const auto name = std::ranges::find(image->entry_points, entry);
  const auto root = std::ranges::find(image->nodes, NodeKind::kSwitch, &Node::kind);
  if (name == image->entry_points.end() || root == image->nodes.end()) return std::nullopt;
  const auto index = static_cast<std::size_t>(name - image->entry_points.begin());
  if (index >= root->children.size()) return std::nullopt;
  return root->children[index];
}

std::uint64_t Data::tileBytes(std::size_t tile, TilePart part) const {
  if (!image->profile || image->profile->ipus.empty()) return 0;
  const auto& profile = *image->profile;
  const std::size_t tiles = image->num_tiles / profile.ipus.size();
  const auto& bytes = profile.ipus[tile / tiles].tile_bytes;
  return bytes[static_cast<std::size_t>(part) * tiles + tile % tiles];
}

const std::string& Data::nameOf(std::uint32_t debug) const {
  static const std::string none;
  return debug < image->debug.size() ? image->debug[debug].name : none;
}

double Data::tripsOf(const Run& run, std::uint32_t node) const {
  const auto counted = run.trips.empty() ? std::nullopt : run.trips[node];
  return counted.value_or(static_cast<double>(image->assumed_trip_count));
}

bool Data::takesPart(std::uint32_t node, std::size_t tile) const {
  if (ipus_by_node.empty()) return true;
  // As in engine/build/Draft.hpp: the last bit stands for all further IPUs.
  const std::size_t tiles = image->num_tiles / std::max<std::size_t>(1, image->ipus.size());
  return (ipus_by_node[node] >> std::min<std::size_t>(tile / tiles, 63) & 1) != 0;
}

unsigned Version::part(int i) const {
  std::istringstream in(text_);
  std::string word;
  for (int at = 0; at <= i; ++at)
    if (!std::getline(in, word, '.')) return 0;
  return static_cast<unsigned>(std::atoi(word.c_str()));  // NOLINT: a text without digits is 0
}

unsigned Target::numIPUs() const {
  return std::max<unsigned>(1, static_cast<unsigned>(data_->image->ipus.size()));
}
unsigned Target::numReplicas() const { return data_->image->signature.num_replicas; }
unsigned Target::numTiles() const { return data_->image->num_tiles; }
std::uint64_t Target::bytesPerTile() const { return data_->image->memory.tile_capacity; }
double Target::clockFrequency() const { return data_->image->clock_hz; }

std::size_t Graph::numComputeSets() const { return Compilation(data_).computeSets().size(); }
std::size_t Graph::numVars() const { return data_->image->buffers.size(); }
std::size_t Graph::numVertices() const {
  return ipujax::engine::numVertices(ipujax::engine::countVertices(*data_->image));
}
std::size_t Graph::numEdges() const { noEdges(); }

std::vector<Tile> Compilation::tiles() const {
  std::vector<Tile> tiles;
  for (std::size_t i = 0; i < data_->image->num_tiles; ++i) tiles.emplace_back(data_, i);
  return tiles;
}

std::vector<Tile> Ipu::tiles() const {
  const std::size_t each = Target(data_).tilesPerIpu();
  std::vector<Tile> tiles;
  for (std::size_t i = 0; i < each; ++i) tiles.emplace_back(data_, ipu_ * each + i);
  return tiles;
}

std::vector<Ipu> Compilation::ipus() const {
  std::vector<Ipu> ipus;
  for (std::size_t i = 0; i < target().numIPUs(); ++i) ipus.emplace_back(data_, i);
  return ipus;
}

std::vector<ProgramPtr> Compilation::programs() const {
  std::vector<ProgramPtr> programs;
  for (std::size_t i = 0; i < data_->image->nodes.size(); ++i)
    programs.push_back(programOf(data_, i));
  return programs;
}

std::vector<ComputeSet> Compilation::computeSets() const {
  std::vector<ComputeSet> sets;
  const auto& steps = data_->image->steps;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].cost.compute_cycles > 0) sets.push_back(computeSetOf(data_, i));
  return sets;
}

std::vector<LivenessProgramStep> Compilation::livenessProgramSteps() const {
  std::vector<LivenessProgramStep> steps;
  if (!data_->image->profile) return steps;
  const std::uint64_t always = data_->image->memory.always_live_bytes;
  for (const auto& point : data_->image->profile->live)
    steps.emplace_back(programOf(data_, point.node),
                       point.live_bytes - std::min(always, point.live_bytes));
  return steps;
}

std::vector<AlwaysLiveVariable> Compilation::alwaysLiveVariables() const {
  std::vector<AlwaysLiveVariable> variables;
  if (!data_->image->profile) return variables;
  for (const auto& tensor : data_->image->profile->tensors)
    if (tensor.always_live) variables.emplace_back(data_->nameOf(tensor.debug), tensor.bytes);
  return variables;
}

std::vector<std::uint64_t> ExecutionStep::cyclesByTile() const {
  return std::vector<std::uint64_t>(data_->image->num_tiles, cycles_);
}

std::vector<IpuExecutionStep> ExecutionStep::ipus() const {
  return std::vector<IpuExecutionStep>(Target(data_).numIPUs(),
                                       IpuExecutionStep(from_, from_ + cycles_));
}

std::vector<ComputeSet> ExecutionStep::computeSets() const {
  if (program_->type() != Program::Type::OnTileExecute) return {};
  return {computeSetOf(data_, data_->image->nodes[program_->_id()].value)};
}

const std::string& Run::name() const { return data_->runs[index_].name; }
std::vector<ExecutionStep> Run::steps() const {
  std::uint64_t now = 0;
  std::vector<ExecutionStep> steps;
  for (std::size_t i = 0; i <= index_; ++i) {
    steps.clear();
    addSteps(data_, data_->runs[i], now, steps);
  }
  return steps;
}

std::vector<Run> Execution::runs() const {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < data_->runs.size(); ++i) runs.emplace_back(data_, i);
  return runs;
}

std::vector<ExecutionStep> Execution::steps() const {
  std::uint64_t now = 0;
  std::vector<ExecutionStep> steps;
  for (const auto& run : data_->runs) addSteps(data_, run, now, steps);
  return steps;
}

Version Report::poplarVersion() const { return Version(poplar::versionString()); }

std::vector<std::uint64_t> ComputeSet::cyclesByTile() const {
  return std::vector<std::uint64_t>(data_->image->num_tiles, cycles_);
}
std::vector<VertexInstance> ComputeSet::vertices() const {
  return instancesOf(ipujax::engine::countVerticesOfStep(*data_->image, step_));
}

std::string Program::name() const {
  const Node& node = data_->image->nodes[id_];
  if (node.kind == NodeKind::kSequence && node.value > 0)
    return data_->nameOf(static_cast<std::uint32_t>(node.value - 1));
  if (node.kind != NodeKind::kStep) return {};
  return data_->nameOf(data_->image->steps[node.value].debug);
}

ComputeSet OnTileExecuteProgram::computeset() const {
  return computeSetOf(data_, data_->image->nodes[_id()].value);
}

std::vector<std::uint64_t> DoExchangeProgram::estimatedCyclesByTile() const {
  const auto& step = data_->image->steps[data_->image->nodes[_id()].value];
  return std::vector<std::uint64_t>(data_->image->num_tiles, rounded(step.cost.exchange_cycles));
}

std::vector<ProgramPtr> Program::children() const {
  std::vector<ProgramPtr> programs;
  for (const auto child : data_->image->nodes[id_].children)
    programs.push_back(programOf(data_, child));
  return programs;
}

std::vector<LoweredVariable> Program::vars() const {
  std::vector<LoweredVariable> vars;
  const Node& node = data_->image->nodes[id_];
  if (node.kind != NodeKind::kStep) return vars;
  for (const auto& operand : data_->image->steps[node.value].operands) {
    const auto& buffer = data_->image->buffers[operand.buffer];
    const bool constant = buffer.kind == ipujax::engine::BufferKind::kConstant;
    vars.emplace_back((constant ? "constant " : "buffer ") + std::to_string(operand.buffer),
                      buffer.bytes, constant);
  }
  return vars;
}

#define IPUJAX_PVA_PROGRAM(name) \
  void name##Program::accept(ProgramVisitor& visitor) const { visitor.visit##name(*this); }
IPUJAX_PVA_PROGRAM(AbortOnCondition)
IPUJAX_PVA_PROGRAM(DoExchange)
IPUJAX_PVA_PROGRAM(If)
IPUJAX_PVA_PROGRAM(OnTileExecute)
IPUJAX_PVA_PROGRAM(Repeat)
IPUJAX_PVA_PROGRAM(RepeatWhile)
IPUJAX_PVA_PROGRAM(Sequence)
IPUJAX_PVA_PROGRAM(StreamCopyBegin)
IPUJAX_PVA_PROGRAM(StreamCopyMid)
IPUJAX_PVA_PROGRAM(StreamCopyEnd)
IPUJAX_PVA_PROGRAM(Switch)
#undef IPUJAX_PVA_PROGRAM

MemoryCategory MemoryByCategory::variable() const {
  std::uint64_t bytes = 0;
  for (const auto part : {TilePart::kTemporaries, TilePart::kParameters, TilePart::kState,
                          TilePart::kAccumulators, TilePart::kStash})
    bytes += data_->tileBytes(tile_, part);
  return MemoryCategory(bytes);
}

#define IPUJAX_PVA_CATEGORY(name, part)                   \
  MemoryCategory MemoryByCategory::name() const {         \
    return MemoryCategory(data_->tileBytes(tile_, part)); \
  }
IPUJAX_PVA_CATEGORY(rearrangement, TilePart::kRearrangement)
IPUJAX_PVA_CATEGORY(message, TilePart::kExchangeBuffers)
IPUJAX_PVA_CATEGORY(hostMessage, TilePart::kHostBuffers)
IPUJAX_PVA_CATEGORY(vertexInstanceState, TilePart::kVertexState)
IPUJAX_PVA_CATEGORY(vertexCode, TilePart::kVertexCode)
IPUJAX_PVA_CATEGORY(controlCode, TilePart::kControlCode)
IPUJAX_PVA_CATEGORY(internalExchangeCode, TilePart::kExchangeCode)
IPUJAX_PVA_CATEGORY(stack, TilePart::kStack)
#undef IPUJAX_PVA_CATEGORY

TotalMemory TileMemory::total() const {
  std::uint64_t including = 0;
  for (std::size_t i = 0; i < ipujax::engine::kPartNames.size(); ++i)
    including += data_->tileBytes(tile_, static_cast<TilePart>(i));
  return {including - data_->tileBytes(tile_, TilePart::kPadding), including};
}

std::uint64_t TileMemory::notAlwaysLiveBytes() const {
  std::uint64_t bytes = 0;
  for (const auto part : {TilePart::kTemporaries, TilePart::kRearrangement,
                          TilePart::kExchangeBuffers, TilePart::kHostBuffers})
    bytes += data_->tileBytes(tile_, part);
  return bytes;
}

std::uint64_t TileMemory::alwaysLiveBytes() const {
  return total().excludingGaps() - notAlwaysLiveBytes();
}
std::vector<VertexInstance> TileMemory::vertices() const {
  return instancesOf(ipujax::engine::countVerticesOnTile(*data_->image, tile_));
}

std::string Version::packageHash() const { return poplar::packageHash(); }

Report reportFrom(const std::string& bytes) {
  std::istringstream in(bytes);
  std::string line;
  auto data = std::make_shared<Data>();
  std::map<std::size_t, std::map<std::uint32_t, double>> trips;  // by run and node
  if (!bytes.starts_with(kHead)) notAReport("something else");
  in.seekg(static_cast<std::streamoff>(kHead.size()));
  while (std::getline(in, line) && !line.empty()) {
    const auto blank = line.find(' ');
    if (blank == std::string::npos) notAReport("an altered one");
    const std::string value = line.substr(blank + 1);
    if (line[0] == '@')
      data->options.emplace(line.substr(1, blank - 1), value);
    else if (line[0] != '#')
      data->runs.push_back({value, line.substr(0, blank)});
    else if (data->runs.empty() || !readTrips(line.substr(1), trips[data->runs.size() - 1]))
      notAReport("an altered one");
  }
  for (const char* filter : {"profiler.blocks.filter", "profiler.programs.filter"})
    if (data->options.contains(filter) && !isPattern(data->options[filter]))
      notAReport("an altered one");
  const std::string image{std::istreambuf_iterator<char>(in), {}};
  try {
    data->image = Image::deserialise(std::as_bytes(std::span(image)));
  } catch (const ipujax::engine::ImageError& e) {
    throw poplar::file_load_error(e.what());
  }
  data->ipus_by_node = ipusByNode(*data->image);
  for (const auto& [run, by_node] : trips) {
    auto& means = data->runs[run].trips;
    means.resize(data->image->nodes.size());
    for (const auto& [node, mean] : by_node) {
      if (node >= means.size()) notAReport("an altered one");
      means[node] = mean;
    }
  }
  return Report(std::move(data));
}

Report openReport(const std::string& compilation, const std::string& /*execution*/) {
  std::ifstream in(compilation, std::ios::binary);
  if (!in) notAReport("'" + compilation + "', which cannot be read");
  return reportFrom({std::istreambuf_iterator<char>(in), {}});
}

}  // namespace pva

namespace poplar {

pva::Report Engine::getReport(bool /*reportExecution*/) const {
  return pva::reportFrom(reportBytes());
}

}  // namespace poplar
