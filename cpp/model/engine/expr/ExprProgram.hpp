#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/Attributes.hpp"
#include "engine/ElementType.hpp"
#include "engine/ops/ExprOp.hpp"

/// Elementwise expressions as straight-line programs that run over blocks of elements. Made from
/// popops::expr trees by compileExpr (popops/internal/ExprCompile.hpp); serialised into a step's
/// attributes; run by kernels: popx.map, and the bodies of reductions, sorts and scatters.
namespace ipujax::engine::expr {

/// One value. Values 0 .. numInputs-1 are the inputs, then one per instruction, in order.
struct Instruction {
  Op op = Op::kConstant;
  ElementType type = ElementType::kFloat;  ///< of the result
  std::array<std::int32_t, 3> args{-1, -1, -1};
  std::int64_t immediate = 0;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// A program in single-assignment form: no dead code, no common subexpression twice.
class ExprProgram {
 public:
  ExprProgram() = default;

  const std::vector<ElementType>& inputTypes() const { return inputs_; }
  std::vector<ElementType> outputTypes() const;
  std::size_t numInputs() const { return inputs_.size(); }
  std::size_t numOutputs() const { return outputs_.size(); }
  const std::vector<Instruction>& instructions() const { return instructions_; }
  const std::vector<std::int32_t>& outputs() const { return outputs_; }  ///< value numbers
  ElementType typeOf(std::int32_t value) const;
  /// The instruction that makes a value; null for an input.
  const Instruction* makerOf(std::int32_t value) const {
    const auto inputs = static_cast<std::int32_t>(inputs_.size());
    return value < inputs ? nullptr : &instructions_[static_cast<std::size_t>(value - inputs)];
  }
  bool usesInput(std::size_t input) const;
  bool isRandom() const;  ///< has kRandomBits

  /// True if the program is exactly `op(input 0, input 1)` (either order for commutative ops),
  /// one output: lets reductions and scatters choose a dedicated kernel.
  bool isBinary(Op op) const;
  /// True if output 0 is input `input`, unchanged, and there are no other outputs.
  bool isInput(std::size_t input) const;

  /// The same program without the inputs it does not use; `kept` gets the old numbers of the rest.
  ExprProgram withoutUnusedInputs(std::vector<std::size_t>& kept) const;

  /// As a step's attribute: `attributes.set("expr", program.toIntegers())`.
  Attributes::Integers toIntegers() const;
  static ExprProgram fromIntegers(const Attributes::Integers& integers);
  std::string toString() const;  ///< one line per instruction, for dumps and errors

 private:
  friend class ExprBuilder;
  std::vector<ElementType> inputs_;
  std::vector<Instruction> instructions_;
  std::vector<std::int32_t> outputs_;
};

/// Makes a program, checking types, folding equal values into one and dropping dead ones.
class ExprBuilder {
 public:
  explicit ExprBuilder(std::vector<ElementType> inputTypes);
  ~ExprBuilder();

  std::int32_t input(std::size_t index) const;  ///< throws if there is no such input
  std::int32_t constant(ElementType type, std::int64_t bits);
  /// The value converted to `type` as kCast would.
  std::int32_t constantFrom(ElementType type, double value);
  std::int32_t cast(std::int32_t value, ElementType type);
  std::int32_t bitcast(std::int32_t value, ElementType type);
  std::int32_t reducePrecision(std::int32_t value, int exponentBits, int mantissaBits);
  /// kUInt32: bits that depend on the stream and the element's number alone.
  std::int32_t randomBits(std::int64_t stream);
  /// Sets the stream for rounding a value to kHalf, see HalfRounding.hpp.
  void setStream(std::int32_t value, std::int64_t stream);
  /// Any op but kConstant, kCast, kBitcast, kReducePrecision, kRandomBits. Throws if types do not
  /// agree.
  std::int32_t apply(Op op, std::span<const std::int32_t> args);
  std::int32_t apply(Op op, std::initializer_list<std::int32_t> args) {
    return apply(op, std::span<const std::int32_t>(args.begin(), args.size()));
  }
  /// Adds an instruction of another program, with operands of this one.
  std::int32_t again(const Instruction& instruction) { return add(instruction); }
  ElementType typeOf(std::int32_t value) const;
  void output(std::int32_t value);
  ExprProgram build();

 private:
  std::int32_t add(const Instruction& instruction);
  struct Table;
  ExprProgram program_;
  std::unique_ptr<Table> table_;
};

/// A program made ready to run: registers allocated, vector kernels chosen for this CPU. Immutable
/// and re-entrant; make it once in a kernel's factory. kHalf values are held as float between
/// operations and rounded to half after each, as on the IPU.
class ExprEvaluator {
 public:
  /// Elements handled at a time; callers that stage inputs in blocks use the same size.
  static constexpr std::int64_t kBlock = 512;
  static constexpr std::size_t kPadding = 64;

  /// `uniform[i]`: input i is one element that holds for the whole call (empty: none are).
  /// `padded`: inputs and outputs have room for kPadding more bytes, which may be read and written.
  explicit ExprEvaluator(const ExprProgram& program, const std::vector<bool>& uniform = {},
                         bool padded = false);
  ~ExprEvaluator();
  ExprEvaluator(ExprEvaluator&&) noexcept;

  /// outputs[j][k] = program(inputs[0][k], ...) for k in [0, n): any n, contiguous arrays in the
  /// storage type; `first` is the number of the first element, for kRandomBits. An output may be
  /// exactly the memory of an input whose type has the same size; else it must not overlap any. No
  /// allocation after the first call on a thread.
  void run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
           std::int64_t n, std::uint64_t first = 0) const;
  /// The same for rows of n elements; row_bytes[i] is the distance between rows of operand i,
  /// inputs first. Uniform inputs hold for a row.
  void runRows(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
               std::int64_t n, std::int64_t rows, std::span<const std::int64_t> row_bytes,
               std::uint64_t first = 0) const;
  /// `run` without the block loop and thread-local look-up, for programs without kRandomBits: n
  /// <= kBlock, `scratch` of scratchBytes(), 64-byte aligned, on which `prepare` was called. For
  /// bodies run very often.
  void runBlock(const std::byte* const* inputs, std::byte* const* outputs, std::int64_t n,
                std::byte* scratch) const;
  /// Computes values that depend only on uniform inputs and constants. Call it before runBlock, and
  /// again whenever a uniform input's value has changed.
  void prepare(const std::byte* const* inputs, std::byte* scratch) const;
  std::size_t scratchBytes() const;
  std::size_t numRegisters() const;  ///< blocks held at one time

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
  std::unique_ptr<const Impl> at_once_;  ///< for `run` on distinct memory; null: never
};

}  // namespace ipujax::engine::expr
