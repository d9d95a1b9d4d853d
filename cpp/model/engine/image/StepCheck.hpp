#pragma once
#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/expr/ExprProgram.hpp"
#include "engine/image/Step.hpp"

namespace ipujax::engine {

struct Image;

/// Checks one operand of a step for what its kernel needs; the first failure refuses the image.
class OperandCheck {
 public:
  const OperandDesc& desc() const { return *desc_; }
  const OperandDesc* operator->() const { return desc_; }
  std::int64_t rank() const { return static_cast<std::int64_t>(desc_->shape.size()); }
  std::int64_t dim(std::size_t d) const;

  const OperandCheck& hasRank(std::int64_t rank) const;
  const OperandCheck& isOf(ElementType type) const;
  const OperandCheck& isOf(std::initializer_list<ElementType> types) const;
  const OperandCheck& isOfBytes(std::size_t element_bytes) const;
  const OperandCheck& isInteger() const;   ///< signed or not; no bool
  const OperandCheck& isFloating() const;  ///< half or float
  const OperandCheck& hasTypeOf(const OperandCheck& other) const;
  const OperandCheck& hasShape(std::span<const std::int64_t> shape) const;
  const OperandCheck& hasShapeOf(const OperandCheck& other) const;
  const OperandCheck& hasElements(std::int64_t n) const;
  const OperandCheck& isContiguous() const;
  const OperandCheck& isOne() const { return hasElements(1); }

 private:
  friend class StepCheck;
  OperandCheck(const class StepCheck& step, std::size_t number);
  const OperandCheck& need(bool good, const char* what) const;

  const StepCheck* step_;
  std::size_t number_;
  const OperandDesc* desc_;
};

/// Checks a kernel's needs of its step before the kernel is made: everything that it relies on
/// without checking again. Bounds, alignment and overlap of operands are verified elsewhere; the
/// sizes of an operand, and their product, fit in 48 bits.
class StepCheck {
 public:
  static constexpr std::int64_t kMostElements = (std::int64_t{1} << 31) - 1;

  StepCheck(const StepDesc& step, const Image& image) : step_(step), image_(image) {}

  const StepDesc& step() const { return step_; }
  const Image& image() const { return image_; }
  std::size_t numOperands() const { return step_.operands.size(); }
  [[noreturn]] void refuse(const std::string& needs) const;
  void need(bool good, const char* what) const {
    if (!good) refuse(what);
  }

  /// Needs exactly n operands.
  void operands(std::size_t n) const;
  /// Needs operand i to be: never written; written as a whole; read and written.
  OperandCheck read(std::size_t i) const { return access(i, Access::kRead, "be only read"); }
  OperandCheck written(std::size_t i) const { return access(i, Access::kWrite, "be written"); }
  OperandCheck updated(std::size_t i) const {
    return access(i, Access::kReadWrite, "be read and written");
  }
  OperandCheck anyAccess(std::size_t i) const { return {*this, i}; }
  /// Operand `written` may be exactly the memory of operand `read`, element by element.
  void mayReplace(std::size_t read, std::size_t written) { in_place_.emplace(read, written); }
  /// The same for each operand from `first_written` on, and any operand before it.
  void mayReplaceAny(std::size_t first_written) { first_written_ = first_written; }
  /// Operands may overlap in any way: the kernel does not rely on distinct memory.
  void allowOverlaps() { may_overlap_ = true; }
  bool mayOverlap() const { return may_overlap_; }
  bool mayShare(std::size_t a, std::size_t b) const;

  bool flag(const char* name) const;
  std::int64_t integer(const char* name, std::int64_t least, std::int64_t most) const;
  double real(const char* name) const;
  const std::string& text(const char* name) const;
  const std::string& text(const char* name, std::initializer_list<const char*> allowed) const;
  const Attributes::Integers& integers(const char* name) const;
  const Attributes::Integers& integers(const char* name, std::size_t count) const;
  /// Different dimensions of a tensor of this rank.
  const Attributes::Integers& dimensions(const char* name, std::int64_t rank) const;
  expr::ExprProgram program(const char* name) const;
  expr::ExprProgram program(const char* name, const std::vector<ElementType>& inputs,
                            const std::vector<ElementType>& outputs) const;

 private:
  OperandCheck access(std::size_t i, Access wanted, const char* what) const {
    const OperandCheck operand(*this, i);
    return operand.need(operand->access == wanted, what);
  }

  const StepDesc& step_;
  const Image& image_;
  std::set<std::pair<std::size_t, std::size_t>> in_place_;
  std::size_t first_written_ = 0;  ///< 0: none
  bool may_overlap_ = false;
};

using KernelCheck = void (*)(StepCheck&);

}  // namespace ipujax::engine
