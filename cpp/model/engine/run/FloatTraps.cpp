#include "engine/run/FloatTraps.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/Errors.hpp"
#include "engine/Half.hpp"
#include "engine/SourceText.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/kernels/move/Edges.hpp"
#include "engine/kernels/move/Turn.hpp"

namespace ipujax::engine {
namespace {

using expr::Op;

/// Traits of one element, or of all operands at an element together.
enum Trait : std::uint8_t { kNan = 1, kInfinite = 2, kZero = 4 };

std::uint8_t traitsOf(double value) {
  if (std::isnan(value)) return kNan;
  if (std::isinf(value)) return kInfinite;
  return value == 0 ? kZero : 0;
}

bool isFloating(ElementType type) {
  return type == ElementType::kHalf || type == ElementType::kFloat || type == ElementType::kDouble;
}

double valueAt(ElementType type, const std::byte* p) {
  if (type == ElementType::kHalf) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, p, sizeof(bits));
    return halfToFloat(bits);
  }
  if (type == ElementType::kFloat) {
    float value = 0;
    std::memcpy(&value, p, sizeof(value));
    return value;
  }
  double value = 0;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

/// Calls fn(number, traits) for the elements of an operand in row-major order.
template <class F>
void forEachElement(const OperandDesc& o, const std::byte* base, const F& fn) {
  const std::int64_t n = o.numElements();
  const auto bytes = static_cast<std::int64_t>(sizeOf(o.type));
  std::vector<std::int64_t> at(o.shape.size());
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    fn(i, traitsOf(valueAt(o.type, base + offset * bytes)));
    for (std::size_t d = o.shape.size(); d-- > 0;) {
      offset += o.strides[d];
      if (++at[d] < o.shape[d]) break;
      offset -= o.strides[d] * o.shape[d];
      at[d] = 0;
    }
  }
}

double constantOf(const expr::Instruction& instruction) {
  const auto bits = static_cast<std::uint64_t>(instruction.immediate);
  std::byte bytes[sizeof(bits)];
  std::memcpy(bytes, &bits, sizeof(bits));
  return valueAt(instruction.type, bytes);
}

class TrapKernel final : public Kernel {
 public:
  TrapKernel(std::unique_ptr<Kernel> kernel, const StepDesc& step, const DebugEntry& debug)
      : kernel_(std::move(kernel)),
        operands_(step.operands),
        traps_(step.attributes.integer(kFloatTraps)),
        where_(placeOf(debug.name, debug.source)),
        name_(step.kernel) {
    divides_ = name_ == "engine.vertices";  // it may divide
    if (roleOf(step) != KernelRole::kElementwise) return;
    is_elementwise_ = true;
    const auto program = expr::ExprProgram::fromIntegers(step.attributes.integers("expr"));
    for (const auto& instruction : program.instructions()) {
      static const std::set<Op> kDividing{Op::kInverse,  Op::kLog,       Op::kLog1p,
                                          Op::kRsqrt,    Op::kDivide,    Op::kPower,
                                          Op::kLogGamma, Op::kRemainder, Op::kVarianceToInvStdDev};
      divides_ |= kDividing.contains(instruction.op);
      if (instruction.op == Op::kConstant && isFloating(instruction.type))
        constants_ |= traitsOf(constantOf(instruction));
    }
  }

  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::vector<std::uint8_t> before = look(pointers);
    kernel_->run(context, pointers);
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const OperandDesc& o = operands_[i];
      if (o.access == Access::kRead || !isFloating(o.type)) continue;
      forEachElement(o, pointers[i], [&](std::int64_t element, std::uint8_t traits) {
        if ((traits & (kNan | kInfinite)) == 0) return;
        check(traits, before[is_elementwise_ ? static_cast<std::size_t>(element) : 0], o, element,
              context.replica);
      });
    }
  }

 private:
  /// The traits of all operands that are read: for each element, or together.
  std::vector<std::uint8_t> look(std::span<std::byte* const> pointers) const {
    const std::int64_t n = is_elementwise_ ? operands_.back().numElements() : 1;
    std::vector<std::uint8_t> found(static_cast<std::size_t>(n), constants_);
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const OperandDesc& o = operands_[i];
      if (o.access == Access::kWrite || !isFloating(o.type)) continue;
      forEachElement(o, pointers[i], [&](std::int64_t element, std::uint8_t traits) {
        found[is_elementwise_ ? static_cast<std::size_t>(element) : 0] |= traits;
      });
    }
    return found;
  }

  void check(std::uint8_t made, std::uint8_t brought, const OperandDesc& o, std::int64_t element,
             std::uint32_t replica) const {
    if ((brought & kNan) != 0) return;
    const bool is_nan = (made & kNan) != 0;
    if (!is_nan && (brought & kInfinite) != 0) return;
    const bool may_divide = divides_ && (brought & kZero) != 0;
    if (is_nan && (traps_ & kTrapInvalid) != 0) raise("an invalid operation", o, element, replica);
    if (!is_nan && may_divide && (traps_ & kTrapDivideByZero) != 0)
      raise("a division by zero", o, element, replica);
    const bool overflows = !is_nan && (!may_divide || !is_elementwise_);
    if (overflows && (traps_ & kTrapOverflow) != 0) raise("an overflow", o, element, replica);
  }

  [[noreturn]] void raise(const char* what, const OperandDesc& o, std::int64_t element,
                          std::uint32_t replica) const {
    std::string shape = "{";
    for (const auto d : o.shape) shape += (shape.size() > 1 ? "," : "") + std::to_string(d);
    throw application_runtime_error(
        "[floating-point exception] '" + where_ + "' needs finite results; got " + what +
        " in step " + name_ + ", element " + std::to_string(element) + " of " + nameOf(o.type) +
        " " + shape + "}" + (replica > 0 ? " of replica " + std::to_string(replica) : "") +
        ". Change its operands, or clear the exception in FloatingPointBehaviour.");
  }

  std::unique_ptr<Kernel> kernel_;
  std::vector<OperandDesc> operands_;
  std::int64_t traps_;
  std::string where_;
  std::string name_;
  bool is_elementwise_ = false;
  bool divides_ = false;
  std::uint8_t constants_ = 0;  ///< traits of the step's own constants
};

}  // namespace

bool hasFloatTraps(const Image& image) {
  return std::ranges::any_of(image.steps,
                             [](const auto& step) { return step.attributes.has(kFloatTraps); });
}

std::unique_ptr<Kernel> withFloatTraps(std::unique_ptr<Kernel> kernel, const StepDesc& step,
                                       const DebugEntry& debug) {
  const bool computes = !dynamic_cast<const CollectiveKernel*>(kernel.get()) &&
                        !dynamic_cast<const TurnKernel*>(kernel.get()) && !kernel->callsHost() &&
                        !kernel->usesStreams() && step.kernel != "engine.copy" &&
                        step.kernel != kEdges;
  if (!computes) return kernel;
  return std::make_unique<TrapKernel>(std::move(kernel), step, debug);
}

}  // namespace ipujax::engine
