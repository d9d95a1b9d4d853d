#include "executable.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "compiler_bridge.hpp"
#include "handle.hpp"

namespace ipujax::plugin {
namespace {

// Answers about costs that threads may still be reading.
constexpr std::size_t kCostsKept = 16;

// Before a program was timed: few steps on little data and no loop end within microseconds.
constexpr std::size_t kShortSteps = 32;
constexpr std::uint64_t kShortBytes = std::uint64_t{1} << 18;

std::uint64_t totalBytes(const std::vector<engine::TensorSpec>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::uint64_t{0},
                         [](auto sum, const auto& tensor) { return sum + tensor.bytes; });
}

/// Of those in one memory.
std::int64_t bytesIn(engine::MemoryKind memory, const std::vector<engine::TensorSpec>& tensors) {
  std::int64_t bytes = 0;
  for (const auto& tensor : tensors)
    if (tensor.memory == memory) bytes += static_cast<std::int64_t>(tensor.bytes);
  return bytes;
}

bool looksShort(const engine::Image& image) {
  const bool loops = std::ranges::any_of(image.nodes, [](const engine::Node& node) {
    return node.kind == engine::NodeKind::kRepeat || node.kind == engine::NodeKind::kRepeatWhile;
  });
  return !loops && image.steps.size() <= kShortSteps &&
         totalBytes(image.signature.inputs) + totalBytes(image.signature.outputs) +
                 image.arena_bytes <=
             kShortBytes;
}

/// What lies in the fullest tile; the names go on after `of`.
void addParts(Options& costs, const std::string& of, const engine::TileParts& parts) {
  for (std::size_t i = 0; i < parts.bytes.size(); ++i)
    costs.insert_or_assign(of + "worst tile " + std::string(engine::kPartNames[i]) + " bytes",
                           static_cast<float>(parts.bytes[i]));
}

/// What the last run counted of loops of unknown length, and the cycles of the program with these
/// counts; nothing before a run.
void addMeasured(Options& costs, const engine::Image& image, const engine::TripMeans& counted) {
  if (counted.empty()) return;
  std::size_t loop = 0;
  for (std::uint32_t node = 0; node < image.nodes.size(); ++node) {
    if (image.nodes[node].kind != engine::NodeKind::kRepeatWhile) continue;
    const std::string name = "loop " + std::to_string(loop++) + " measured trip count";
    if (counted[node]) costs.insert_or_assign(name, static_cast<float>(*counted[node]));
  }
  const double more = engine::costOf(image, 0, counted).cycles() - image.cost().cycles();
  costs.insert_or_assign("measured cycles", static_cast<float>(image.elapsedCycles() + more));
}

/// The first names are the ones XLA's own backends use, so that tools find them.
Options costsOf(const Program& program) {
  const engine::Image& image = *program.image();
  const auto cost = image.cost();
  const auto moved = static_cast<double>(totalBytes(image.signature.inputs) +
                                         totalBytes(image.signature.outputs)) +
                     cost.exchange_bytes;
  const double cycles = image.elapsedCycles();
  double streaming_cycles = 0;
  double io_cycles = 0;
  double hidden_cycles = 0;
  for (const auto& ipu : image.ipus) {
    streaming_cycles += ipu.host_cycles;
    io_cycles += ipu.io_cycles;
    hidden_cycles += ipu.hidden_io_cycles;
  }
  const double seconds = image.clock_hz > 0 ? cycles / image.clock_hz : 0;
  const auto real = [](double value) { return static_cast<float>(value); };
  Options costs{{"flops", real(cost.flops)},
                {"bytes accessed", real(moved)},
                {"optimal_seconds", real(seconds)},
                {"seconds", real(seconds)},
                {"cycles", real(cycles)},
                {"compute cycles", real(cost.compute_cycles)},
                {"exchange cycles", real(cost.exchange_cycles)},
                {"sync cycles", real(cost.sync_cycles)},
                {"link cycles", real(cost.link_cycles - streaming_cycles)},
                {"host cycles", real(streaming_cycles + io_cycles)},
                {"hidden host cycles", real(hidden_cycles)},
                {"host bytes", real(cost.host_bytes)},
                {"cycles without host", real(image.cycles_without_host)},
                {"exchange bytes", real(cost.exchange_bytes)},
                {"link bytes", real(cost.link_bytes)},
                {"worst tile bytes", real(static_cast<double>(image.memory.worst_tile_bytes))}};
  const auto loops = image.unknownLoops();
  costs.insert_or_assign("unknown trip counts", static_cast<float>(loops.count));
  if (loops.count > 0) {
    costs.insert_or_assign("assumed trip count", static_cast<float>(image.assumed_trip_count));
    costs.insert_or_assign("cycles per iteration", real(loops.iteration_cycles));
    addMeasured(costs, image, program.tripMeans());
  }
  for (std::size_t i = 0; image.ipus.size() > 1 && i < image.ipus.size(); ++i) {
    const std::string ipu = "ipu " + std::to_string(i) + " ";
    costs.insert_or_assign(ipu + "compute cycles", real(image.ipus[i].compute_cycles));
    costs.insert_or_assign(ipu + "exchange cycles", real(image.ipus[i].exchange_cycles));
    costs.insert_or_assign(ipu + "link cycles", real(image.ipus[i].link_cycles));
    costs.insert_or_assign(ipu + "host cycles",
                           real(image.ipus[i].host_cycles + image.ipus[i].io_cycles));
    costs.insert_or_assign(ipu + "idle cycles", real(image.ipus[i].idle_cycles));
    costs.insert_or_assign(ipu + "worst tile bytes",
                           real(static_cast<double>(image.ipus[i].worst_tile_bytes)));
    addParts(costs, ipu, image.ipus[i].worst_tile);
  }
  const auto fullest =
      std::ranges::max_element(image.ipus, {}, &engine::IpuAccount::worst_tile_bytes);
  if (fullest != image.ipus.end()) addParts(costs, "", fullest->worst_tile);
  return costs;
}

}  // namespace

Program::Program(std::shared_ptr<const engine::Image> image)
    : image_(std::move(image)), looks_short_(plugin::looksShort(*image_)) {
  const auto& signature = image_->signature;
  for (const auto& output : signature.outputs) {
    const bool token = output.dtype == "token";
    outputs_.push_back(std::make_shared<const Shape>(
        elementInfo(output.dtype).type, token ? std::vector<std::int64_t>{} : output.shape));
    if (!token && outputs_.back()->bytes != output.bytes) {
      failInvalidArgument("[ipu executable] needs " + std::to_string(outputs_.back()->bytes) +
                          " bytes for a " + output.dtype + " result; got " +
                          std::to_string(output.bytes) + ".");
    }
  }
  for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
    const auto& output = signature.outputs[i];
    if (signature.output_alias.at(i) < 0)
      new_bytes_.at(static_cast<std::size_t>(output.memory)) += output.bytes;
  }
}

engine::TripMeans Program::tripMeans() const {
  const std::scoped_lock lock(trip_means_mutex_);
  return trip_means_;
}

void Program::noteTripMeans(engine::TripMeans means) const {
  if (means.empty()) return;
  const std::scoped_lock lock(trip_means_mutex_);
  trip_means_ = std::move(means);
}

std::shared_ptr<const Program> Program::open(std::string_view sealed) {
  return std::make_shared<const Program>(
      engine::Image::deserialise(std::as_bytes(std::span(sealed.data(), sealed.size()))));
}

ShardingTexts::ShardingTexts(const std::vector<engine::TensorSpec>& specs, bool known) {
  if (!known) return;
  for (const auto& spec : specs) {
    texts.push_back(spec.sharding.data());
    sizes.push_back(spec.sharding.size());
  }
}

MemoryKindNames::MemoryKindNames(const std::vector<engine::TensorSpec>& specs) {
  for (const auto& spec : specs) {
    names.push_back(engine::nameOf(spec.memory));
    sizes.push_back(std::strlen(names.back()));
  }
}

Executable::Executable(std::shared_ptr<const Program> program, DeviceAssignment assignment)
    : program_(std::move(program)),
      assignment_(std::move(assignment)),
      parameter_shardings_(program_->signature().inputs, program_->signature().num_replicas > 1),
      output_shardings_(program_->signature().outputs, program_->signature().num_replicas > 1),
      parameter_memories_(program_->signature().inputs),
      output_memories_(program_->signature().outputs) {
  for (const auto& shape : program_->outputs()) {
    output_types.push_back(shape->type);
    output_ranks.push_back(shape->dims.size());
    output_dims.insert(output_dims.end(), shape->dims.begin(), shape->dims.end());
  }
}

const NamedValues& Executable::costs() {
  Options now = costsOf(*program_);
  const std::scoped_lock lock(costs_mutex_);
  if (costs_.empty() || costs_.back().options() != now) costs_.emplace_back(std::move(now));
  if (costs_.size() > kCostsKept) costs_.pop_front();
  return costs_.back();
}

namespace {

void destroy(PJRT_Executable_Destroy_Args& args) { adopt<Executable>(args.executable).reset(); }

void name(PJRT_Executable_Name_Args& args) {
  const auto& text = object<Executable>(args.executable).program().signature().name;
  args.executable_name = text.data();
  args.executable_name_size = text.size();
}

void numReplicas(PJRT_Executable_NumReplicas_Args& args) {
  args.num_replicas =
      static_cast<std::size_t>(object<Executable>(args.executable).assignment().num_replicas);
}

void numPartitions(PJRT_Executable_NumPartitions_Args& args) {
  args.num_partitions =
      static_cast<std::size_t>(object<Executable>(args.executable).assignment().num_partitions);
}

void numOutputs(PJRT_Executable_NumOutputs_Args& args) {
  args.num_outputs = object<Executable>(args.executable).program().outputs().size();
}

void sizeOfGeneratedCode(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args& args) {
  args.size_in_bytes =
      static_cast<std::int64_t>(object<Executable>(args.executable).image().memory.code_bytes);
}

void getCostAnalysis(PJRT_Executable_GetCostAnalysis_Args& args) {
  const auto& costs = object<Executable>(args.executable).costs();
  args.num_properties = costs.size();
  args.properties = costs.data();
}

/// Device figures are of tile memory, host figures of streaming memory.
void getCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  const auto& image = object<Executable>(args.executable).image();
  const auto& signature = image.signature;
  const auto& account = image.memory;
  std::vector<engine::TensorSpec> taken_over;
  for (std::size_t i = 0; i < signature.output_alias.size(); ++i) {
    if (signature.output_alias[i] >= 0) taken_over.push_back(signature.outputs[i]);
  }
  const auto bytes = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  using enum engine::MemoryKind;
  args.generated_code_size_in_bytes = bytes(account.code_bytes);
  args.argument_size_in_bytes = bytesIn(kDevice, signature.inputs);
  args.output_size_in_bytes = bytesIn(kDevice, signature.outputs);
  args.alias_size_in_bytes = bytesIn(kDevice, taken_over);
  args.temp_size_in_bytes =
      bytes(account.peak_live_bytes - std::min(account.peak_live_bytes, account.always_live_bytes));
  args.host_generated_code_size_in_bytes = 0;
  args.host_argument_size_in_bytes = bytesIn(kPinnedHost, signature.inputs);
  args.host_output_size_in_bytes = bytesIn(kPinnedHost, signature.outputs);
  args.host_alias_size_in_bytes = bytesIn(kPinnedHost, taken_over);
  args.host_temp_size_in_bytes = bytes(image.streaming.temporary_bytes);
  args.peak_memory_in_bytes = bytes(account.peak_live_bytes);
  args.total_size_in_bytes = bytes(account.peak_live_bytes);
  args.total_allocation_bytes = bytes(account.peak_live_bytes);
  args.indefinite_allocations = 0;
  args.peak_unpadded_heap_bytes = bytes(account.peak_live_bytes);
}

void outputElementTypes(PJRT_Executable_OutputElementTypes_Args& args) {
  auto& types = object<Executable>(args.executable).output_types;
  args.output_types = types.data();
  args.num_output_types = types.size();
}

void outputDimensions(PJRT_Executable_OutputDimensions_Args& args) {
  const auto& executable = object<Executable>(args.executable);
  args.num_outputs = executable.output_ranks.size();
  args.dims = executable.output_dims.data();
  args.dim_sizes = executable.output_ranks.data();
}

void outputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args& args) {
  const auto& memories = object<Executable>(args.executable).outputMemories();
  args.num_outputs = memories.names.size();
  args.memory_kinds = memories.names.data();
  args.memory_kind_sizes = memories.sizes.data();
}

void parameterMemoryKinds(PJRT_Executable_ParameterMemoryKinds_Args& args) {
  const auto& memories = object<Executable>(args.executable).parameterMemories();
  args.num_parameters = memories.names.size();
  args.memory_kinds = memories.names.data();
  args.memory_kind_sizes = memories.sizes.data();
}

/// Called twice: for the size, then with room for the code.
/// jaxlib asks for it with every program, for the layouts of its results. For one device it can do
/// without; of several devices it takes what it did not get for a layout, and dies when it saves
/// the executable. The interface says as much, and takes no time to read.
void optimizedProgram(PJRT_Executable_OptimizedProgram_Args& args) {
  const auto& image = object<Executable>(args.executable).image();
  const auto& text = bridge::showsProgramText() ? image.stablehlo : image.signature.interface;
  if (text.empty()) {
    throw PluginError(PJRT_Error_Code_UNIMPLEMENTED,
                      "[ipu executable] shows the text of its program to as_text only.");
  }
  static constexpr std::string_view kFormat = "mlir";
  args.program->format = kFormat.data();
  args.program->format_size = kFormat.size();
  if (args.program->code) {
    if (args.program->code_size < text.size()) {
      failInvalidArgument("[ipu executable] needs room for " + std::to_string(text.size()) +
                          " bytes of program; got " + std::to_string(args.program->code_size) +
                          ".");
    }
    std::memcpy(args.program->code, text.data(), text.size());
  }
  args.program->code_size = text.size();
}

struct Serialised final : PJRT_SerializedExecutable {
  std::string bytes;
};

void destroySerialised(PJRT_SerializedExecutable* serialised) {
  adopt<Serialised>(serialised).reset();
}

void serialize(PJRT_Executable_Serialize_Args& args) {
  auto serialised = std::make_unique<Serialised>();
  const auto& executable = object<Executable>(args.executable);
  engine::Image saved = executable.image();
  saved.signature.device_ids = executable.assignment().device_ids;
  serialised->bytes = saved.serialise();
  args.serialized_bytes = serialised->bytes.data();
  args.serialized_bytes_size = serialised->bytes.size();
  args.serialized_executable = release(std::move(serialised));
  args.serialized_executable_deleter = destroySerialised;
}

void fingerprint(PJRT_Executable_Fingerprint_Args& args) {
  const auto& text = object<Executable>(args.executable).image().fingerprint;
  args.executable_fingerprint = text.data();
  args.executable_fingerprint_size = text.size();
}

}  // namespace

void executable::bind(PJRT_Api& api) {
  api.PJRT_Executable_Destroy = guarded<destroy>;
  api.PJRT_Executable_Name = guarded<name>;
  api.PJRT_Executable_NumReplicas = guarded<numReplicas>;
  api.PJRT_Executable_NumPartitions = guarded<numPartitions>;
  api.PJRT_Executable_NumOutputs = guarded<numOutputs>;
  api.PJRT_Executable_SizeOfGeneratedCodeInBytes = guarded<sizeOfGeneratedCode>;
  api.PJRT_Executable_GetCostAnalysis = guarded<getCostAnalysis>;
  api.PJRT_Executable_GetCompiledMemoryStats = guarded<getCompiledMemoryStats>;
  api.PJRT_Executable_OutputElementTypes = guarded<outputElementTypes>;
  api.PJRT_Executable_OutputDimensions = guarded<outputDimensions>;
  api.PJRT_Executable_OutputMemoryKinds = guarded<outputMemoryKinds>;
  api.PJRT_Executable_ParameterMemoryKinds = guarded<parameterMemoryKinds>;
  api.PJRT_Executable_OptimizedProgram = guarded<optimizedProgram>;
  api.PJRT_Executable_Serialize = guarded<serialize>;
  api.PJRT_Executable_Fingerprint = guarded<fingerprint>;
}

}  // namespace ipujax::plugin
