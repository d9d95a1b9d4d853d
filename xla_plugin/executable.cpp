#include "executable.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "compiler_bridge.hpp"
#include "handle.hpp"
#include "layouts.hpp"
#include "runtime/Backend.hpp"

namespace ipujax::plugin {
namespace {

// Number of cost tables kept, because threads may still be reading old ones.
constexpr std::size_t kCostsKept = 16;

/// Total size of the tensors in one memory.
std::int64_t bytesIn(runtime::MemoryKind memory, const std::vector<runtime::TensorSpec>& tensors) {
  std::int64_t bytes = 0;
  for (const auto& tensor : tensors)
    if (tensor.memory == memory) bytes += static_cast<std::int64_t>(tensor.bytes);
  return bytes;
}

Options costsOf(const Program& program) {
  Options costs;
  for (auto& [name, cost] : program.compiled().costs()) costs.insert_or_assign(name, cost);
  return costs;
}

}  // namespace

Program::Program(std::shared_ptr<const runtime::Program> compiled)
    : compiled_(std::move(compiled)) {
  const auto& signature = compiled_->signature();
  for (const auto& output : signature.outputs) {
    const bool token = output.dtype == "token";
    outputs_.push_back(std::make_shared<const Shape>(
        elementInfo(output.dtype).type, token ? std::vector<std::int64_t>{} : output.shape,
        output.minor_to_major));
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

std::shared_ptr<const Program> Program::open(std::string_view sealed) {
  return std::make_shared<const Program>(
      runtime::openProgram(std::as_bytes(std::span(sealed.data(), sealed.size()))));
}

ShardingTexts::ShardingTexts(const std::vector<runtime::TensorSpec>& specs, bool known) {
  if (!known) return;
  for (const auto& spec : specs) {
    texts.push_back(spec.sharding.data());
    sizes.push_back(spec.sharding.size());
  }
}

MemoryKindNames::MemoryKindNames(const std::vector<runtime::TensorSpec>& specs) {
  for (const auto& spec : specs) {
    names.push_back(runtime::nameOf(spec.memory));
    sizes.push_back(std::strlen(names.back()));
  }
}

Executable::Executable(std::shared_ptr<const Program> program, DeviceAssignment assignment,
                       std::string target)
    : program_(std::move(program)),
      assignment_(std::move(assignment)),
      target_(std::move(target)),
      parameter_shardings_(program_->signature().inputs, program_->signature().num_replicas > 1),
      output_shardings_(program_->signature().outputs, program_->signature().num_replicas > 1),
      parameter_memories_(program_->signature().inputs),
      output_memories_(program_->signature().outputs) {
  for (const auto& shape : program_->outputs()) {
    output_types.push_back(shape->type);
    output_ranks.push_back(shape->dims.size());
    output_dims.insert(output_dims.end(), shape->dims.begin(), shape->dims.end());
    output_layouts.push_back(layouts::of(shape->minor_to_major));
  }
  for (const auto& input : program_->signature().inputs) {
    const bool known = !input.minor_to_major.empty();
    const auto rank = input.dtype == "token" ? 0 : input.shape.size();
    parameter_layouts.push_back(known ? layouts::of(input.minor_to_major) : layouts::ofRank(rank));
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
      static_cast<std::int64_t>(object<Executable>(args.executable).compiled().bytes().code);
}

void getCostAnalysis(PJRT_Executable_GetCostAnalysis_Args& args) {
  const auto& costs = object<Executable>(args.executable).costs();
  args.num_properties = costs.size();
  args.properties = costs.data();
}

/// Device figures are for tile memory, host figures for streaming memory.
void getCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  const auto& program = object<Executable>(args.executable).compiled();
  const auto& signature = program.signature();
  const auto account = program.bytes();
  std::vector<runtime::TensorSpec> taken_over;
  for (std::size_t i = 0; i < signature.output_alias.size(); ++i) {
    if (signature.output_alias[i] >= 0) taken_over.push_back(signature.outputs[i]);
  }
  const auto bytes = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  using enum runtime::MemoryKind;
  args.generated_code_size_in_bytes = bytes(account.code);
  args.argument_size_in_bytes = bytesIn(kDevice, signature.inputs);
  args.output_size_in_bytes = bytesIn(kDevice, signature.outputs);
  args.alias_size_in_bytes = bytesIn(kDevice, taken_over);
  args.temp_size_in_bytes =
      bytes(account.peak_live - std::min(account.peak_live, account.always_live));
  args.host_generated_code_size_in_bytes = 0;
  args.host_argument_size_in_bytes = bytesIn(kPinnedHost, signature.inputs);
  args.host_output_size_in_bytes = bytesIn(kPinnedHost, signature.outputs);
  args.host_alias_size_in_bytes = bytesIn(kPinnedHost, taken_over);
  args.host_temp_size_in_bytes = bytes(account.streaming_temporary);
  args.peak_memory_in_bytes = bytes(account.peak_live);
  args.total_size_in_bytes = bytes(account.peak_live);
  args.total_allocation_bytes = bytes(account.peak_live);
  args.indefinite_allocations = 0;
  args.peak_unpadded_heap_bytes = bytes(account.peak_live);
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
/// jaxlib asks for the code of every program, to learn the layouts of its results. For one device
/// it can do without; for several, it mistakes a missing answer for a layout and crashes when it
/// saves the executable. The program's interface says the same and parses in no time.
void optimizedProgram(PJRT_Executable_OptimizedProgram_Args& args) {
  const auto& program = object<Executable>(args.executable).compiled();
  const auto& text = bridge::showsProgramText() ? program.text() : program.signature().interface;
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
  serialised->bytes =
      executable.compiled().serialise(executable.assignment().device_ids, executable.target());
  args.serialized_bytes = serialised->bytes.data();
  args.serialized_bytes_size = serialised->bytes.size();
  args.serialized_executable = release(std::move(serialised));
  args.serialized_executable_deleter = destroySerialised;
}

void fingerprint(PJRT_Executable_Fingerprint_Args& args) {
  const auto& text = object<Executable>(args.executable).compiled().fingerprint();
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
