#pragma once
#include <array>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "compile_options.hpp"
#include "memory.hpp"
#include "named_values.hpp"
#include "runtime/Program.hpp"
#include "shape.hpp"

namespace ipujax::plugin {

/// A compiled program and everything about it that can be known beforehand; shared by the
/// executables and launches that use it.
class Program {
 public:
  explicit Program(std::shared_ptr<const runtime::Program> compiled);
  static std::shared_ptr<const Program> open(std::string_view sealed);  ///< throws ExecutableError

  const runtime::Program& compiled() const { return *compiled_; }
  const runtime::Signature& signature() const { return compiled_->signature(); }
  const std::vector<std::shared_ptr<const Shape>>& outputs() const { return outputs_; }
  /// Bytes that results which take over no argument add to each memory, by kind.
  const std::array<std::size_t, kNumMemories>& newBytes() const { return new_bytes_; }

 private:
  std::shared_ptr<const runtime::Program> compiled_;
  std::vector<std::shared_ptr<const Shape>> outputs_;
  std::array<std::size_t, kNumMemories> new_bytes_{};
};

/// Serialised shardings of all inputs, or all outputs, of a program; empty if they are unknown, as
/// for one device. An empty text means "the same on all devices".
struct ShardingTexts {
  ShardingTexts(const std::vector<runtime::TensorSpec>& specs, bool known);
  std::vector<const char*> texts;  ///< into the program
  std::vector<std::size_t> sizes;
};

/// The names of the memories of all inputs, or all outputs, of a program.
struct MemoryKindNames {
  explicit MemoryKindNames(const std::vector<runtime::TensorSpec>& specs);
  std::vector<const char*> names;
  std::vector<std::size_t> sizes;
};

/// What JAX asks about a program, whether or not it is loaded. Owned by jaxlib.
class Executable final : public PJRT_Executable {
 public:
  Executable(std::shared_ptr<const Program> program, DeviceAssignment assignment,
             std::string target);

  const Program& program() const { return *program_; }
  const std::shared_ptr<const Program>& shared() const { return program_; }
  const runtime::Program& compiled() const { return program_->compiled(); }
  const DeviceAssignment& assignment() const { return assignment_; }
  const std::string& target() const { return target_; }  ///< PlatformConfig's, of the devices
  const NamedValues& costs();                            ///< with the counts of all runs so far
  const ShardingTexts& parameterShardings() const { return parameter_shardings_; }
  const ShardingTexts& outputShardings() const { return output_shardings_; }
  const MemoryKindNames& parameterMemories() const { return parameter_memories_; }
  const MemoryKindNames& outputMemories() const { return output_memories_; }

  // Results of API entries point into these arrays, one element per parameter or output.
  std::vector<PJRT_Layouts_MemoryLayout*> parameter_layouts;
  std::vector<PJRT_Layouts_MemoryLayout*> output_layouts;
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<std::int64_t> output_dims;
  std::vector<std::size_t> output_ranks;

 private:
  std::shared_ptr<const Program> program_;
  DeviceAssignment assignment_;
  const std::string target_;
  std::mutex costs_mutex_;
  std::list<NamedValues> costs_;  // the newest is last; JAX may still read older ones
  ShardingTexts parameter_shardings_;
  ShardingTexts output_shardings_;
  MemoryKindNames parameter_memories_;
  MemoryKindNames output_memories_;
};

namespace executable {
void bind(PJRT_Api& api);
}

}  // namespace ipujax::plugin
