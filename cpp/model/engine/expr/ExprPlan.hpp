#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/code/CodeMemory.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/simd/MapOps.hpp"

/// A program as steps on memory, which an ExprEvaluator runs. Internal to engine/expr.
namespace ipujax::engine::expr {

constexpr std::size_t kLine = 64;
constexpr std::size_t roundUpToLine(std::size_t x) { return (x + kLine - 1) / kLine * kLine; }

enum class Kind : std::uint8_t {
  kMap,
  kMapRounded,
  kLoadHalf,
  kStoreHalf,
  kCopy,
  kFill,
  kRandom,
  kChain
};

/// Address of a value: an offset in bytes into an input, an output, the scratch or the constants.
struct Place {
  std::uint32_t base = 0;
  std::uint32_t offset = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

struct Step {
  Kind kind = Kind::kMap;
  std::uint8_t bytes = 4;  ///< of an element, for kCopy and kFill
  simd::MapFn fn = nullptr;
  Place args[3];
  Place out;
  std::int64_t immediate = 0;  ///< of the operation; for kChain the chain's number
};

constexpr std::size_t kMostChained = 64;               ///< steps of a chain
constexpr std::size_t kMostMemory = 4 * kMostChained;  ///< three operands and a result of each

/// A run of operations in registers, for kChain.
struct Chain {
  struct Memory {
    Place place;
    bool external = false;  ///< an input or output: nothing may be touched past the last element
    bool written = false;
  };
  std::shared_ptr<const code::Code> code;
  std::vector<Memory> memory;
  std::vector<std::uint8_t> steps;  ///< of memory: bytes of an element, 0 if scalar
  std::int64_t lanes = 0;
  bool has_external = false;  ///< memory
};

/// All that a run needs, read only. Bases are, in order: inputs, outputs, scratch, constants.
struct ExprPlan {
  std::size_t num_inputs = 0;
  std::size_t num_outputs = 0;
  std::vector<std::size_t> input_step;  ///< bytes an input advances per element; 0 if uniform
  std::vector<std::size_t> output_step;
  std::vector<Step> uniform_steps;  ///< one element each, into scratch
  std::vector<Step> steps;
  std::vector<Chain> chains;
  std::vector<std::uint64_t> constants;
  /// Pairs (output, input) of different memory: the input is read after the output is written.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> apart;
  std::size_t scratch_bytes = 0;  ///< bases first, then uniform values, then registers
  std::size_t num_slots = 0;

  std::uint32_t scratchBase() const { return static_cast<std::uint32_t>(num_inputs + num_outputs); }
  std::uint32_t constantBase() const { return scratchBase() + 1; }
  std::size_t numBases() const { return num_inputs + num_outputs + 2; }
};

/// When a result is written to its output.
enum class Writes {
  kAfterReads,  ///< after all reads of inputs: an output may be any input's memory
  kAtOnce       ///< when it is computed: outputs and inputs in `apart` must be different memory
};

/// Separates uniform values, folds constants, chains cheap operations, uses few register blocks,
/// and writes results to their output without a copy where `writes` allows it.
ExprPlan makePlan(const ExprProgram& program, const std::vector<bool>& uniform, bool padded = false,
                  Writes writes = Writes::kAfterReads);

/// Runs one step, neither kChain nor kRandom, on n elements.
void execute(const Step& step, const std::byte* const* bases, std::int64_t n);
void execute(const Chain& chain, const std::byte* const* bases, std::int64_t n);

}  // namespace ipujax::engine::expr
