#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/MemoryKind.hpp"

namespace ipujax::runtime {

/// One program parameter or result as JAX sees it.
struct TensorSpec {
  std::string dtype;  ///< JAX's name: "float32", "bfloat16", "bool", ..., "token"
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;  ///< in one replica
  std::string sharding;     ///< a serialised xla.OpSharding; meaningless with one replica
  MemoryKind memory = MemoryKind::kDevice;  ///< where the caller has it, or wants it
  bool is_streamed = false;  ///< accounted as crossing the link to the host in every run
  /// The layout that the caller sees, a permutation of the dimensions; empty if it is row-major.
  /// Runs always get row-major arrays.
  std::vector<std::int64_t> minor_to_major{};
};

/// What a caller must know to run a program.
struct Signature {
  std::string name;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  /// For each output: the input whose memory it may take over (donation), or -1.
  std::vector<std::int32_t> output_alias;
  bool has_host_callbacks = false;
  std::uint32_t num_replicas = 1;
  /// One for each replica: the devices of the executable that was saved; empty before.
  std::vector<std::int32_t> device_ids;
  /// The program without its body, as MLIR text, for callers that need only types; may be empty.
  std::string interface;
  /// Whether it draws random bits, in stochastic rounding, that depend on the seed of a run.
  bool takes_seed = false;
  /// Whether it prints without callbacks: tensors, or the output of users' codelets.
  bool prints = false;
  /// The kind of device that the executable was saved for, as text; empty before.
  std::string target{};
};

/// Thrown for bytes that are not an executable, or not one of this build.
class ExecutableError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown for what this build does not support.
class NotSupportedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ipujax::runtime
