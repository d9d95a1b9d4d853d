#include "engine/image/StepCheck.hpp"

#include <algorithm>

#include "engine/image/Image.hpp"

namespace ipujax::engine {

OperandCheck::OperandCheck(const StepCheck& step, std::size_t number)
    : step_(&step), number_(number), desc_(nullptr) {
  if (number >= step.numOperands())
    step.refuse("an operand " + std::to_string(number) + ", of which it has " +
                std::to_string(step.numOperands()));
  desc_ = &step.step().operands[number];
}

const OperandCheck& OperandCheck::need(bool good, const char* what) const {
  if (!good) step_->refuse("operand " + std::to_string(number_) + " to " + what);
  return *this;
}

std::int64_t OperandCheck::dim(std::size_t d) const {
  need(d < desc_->shape.size(), "have more dimensions");
  return desc_->shape[d];
}

const OperandCheck& OperandCheck::hasRank(std::int64_t rank) const {
  return need(this->rank() == rank, "have another rank");
}

const OperandCheck& OperandCheck::isOf(ElementType type) const {
  return need(desc_->type == type, "be of another type");
}

const OperandCheck& OperandCheck::isOf(std::initializer_list<ElementType> types) const {
  return need(std::ranges::find(types, desc_->type) != types.end(), "be of another type");
}

const OperandCheck& OperandCheck::isOfBytes(std::size_t element_bytes) const {
  return need(sizeOf(desc_->type) == element_bytes, "have elements of another size");
}

const OperandCheck& OperandCheck::isInteger() const {
  const bool integer = desc_->type >= ElementType::kInt8 && desc_->type <= ElementType::kUInt64;
  return need(integer, "hold integers");
}

const OperandCheck& OperandCheck::isFloating() const {
  return isOf({ElementType::kHalf, ElementType::kFloat});
}

const OperandCheck& OperandCheck::hasTypeOf(const OperandCheck& other) const {
  return isOf(other->type);
}

const OperandCheck& OperandCheck::hasShape(std::span<const std::int64_t> shape) const {
  return need(std::ranges::equal(desc_->shape, shape), "have another shape");
}

const OperandCheck& OperandCheck::hasShapeOf(const OperandCheck& other) const {
  return hasShape(other->shape);
}

const OperandCheck& OperandCheck::hasElements(std::int64_t n) const {
  return need(desc_->numElements() == n, "have another number of elements");
}

const OperandCheck& OperandCheck::isContiguous() const {
  return need(desc_->isContiguous(), "be row-major without gaps");
}

void StepCheck::refuse(const std::string& needs) const {
  throw ImageError("[Executable] cannot be run: a step of kernel " + step_.kernel + " needs " +
                   needs + ". Compile it again.");
}

void StepCheck::operands(std::size_t n) const {
  if (numOperands() != n)
    refuse(std::to_string(n) + " operands; it has " + std::to_string(numOperands()));
}

bool StepCheck::mayShare(std::size_t a, std::size_t b) const {
  const auto [low, high] = std::minmax(a, b);
  return (low < first_written_ && high >= first_written_) || in_place_.contains({a, b}) ||
         in_place_.contains({b, a});
}

bool StepCheck::flag(const char* name) const { return integer(name, 0, 1) != 0; }

std::int64_t StepCheck::integer(const char* name, std::int64_t least, std::int64_t most) const {
  const std::int64_t value = step_.attributes.integer(name);
  if (value < least || value > most)
    refuse("'" + std::string(name) + "' between " + std::to_string(least) + " and " +
           std::to_string(most) + "; it is " + std::to_string(value));
  return value;
}

double StepCheck::real(const char* name) const { return step_.attributes.real(name); }

const std::string& StepCheck::text(const char* name) const { return step_.attributes.text(name); }

const std::string& StepCheck::text(const char* name,
                                   std::initializer_list<const char*> allowed) const {
  const std::string& value = text(name);
  if (std::ranges::find(allowed, value) == allowed.end())
    refuse("another '" + std::string(name) + "'");
  return value;
}

const Attributes::Integers& StepCheck::integers(const char* name) const {
  return step_.attributes.integers(name);
}

const Attributes::Integers& StepCheck::integers(const char* name, std::size_t count) const {
  const auto& values = integers(name);
  if (values.size() != count)
    refuse(std::to_string(count) + " integers of '" + name + "'; it has " +
           std::to_string(values.size()));
  return values;
}

const Attributes::Integers& StepCheck::dimensions(const char* name, std::int64_t rank) const {
  const auto& values = integers(name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool known = values[i] >= 0 && values[i] < rank;
    if (!known || std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i),
                            values[i]) != values.begin() + static_cast<std::ptrdiff_t>(i))
      refuse("different dimensions below " + std::to_string(rank) + " as '" + name + "'");
  }
  return values;
}

expr::ExprProgram StepCheck::program(const char* name) const {
  return expr::ExprProgram::fromIntegers(integers(name));
}

expr::ExprProgram StepCheck::program(const char* name, const std::vector<ElementType>& inputs,
                                     const std::vector<ElementType>& outputs) const {
  auto result = program(name);
  if (result.inputTypes() != inputs || result.outputTypes() != outputs)
    refuse("an expression '" + std::string(name) + "' of its operands' types");
  return result;
}

}  // namespace ipujax::engine
