#pragma once
#include <cstddef>
#include <vector>

#include "engine/code/Strip.hpp"

namespace ipujax::engine::code {

constexpr unsigned kTemporaries = 5;  ///< registers 0 to 4: three operands, two intermediates

/// Where the values of a program are while its code runs. Several vectors go through the code side
/// by side, so that one's latency hides behind the others'.
class StripPlacement {
 public:
  /// `wide`: for AVX-512, which has 32 registers instead of 16.
  StripPlacement(const StripProgram& program, bool wide, unsigned most_copies = 4);

  static constexpr unsigned kNowhere = ~0u;
  struct Home {
    unsigned reg = kNowhere;    ///< of the first copy; the others follow
    unsigned frame = kNowhere;  ///< a place in the frame, for a vector
  };
  unsigned copies() const { return copies_; }
  std::size_t frameBytes() const { return std::size_t{num_frame_} * (wide_ ? 64 : 32); }
  const Home& home(std::size_t v) const { return home_[v]; }
  bool isVarying(std::size_t v) const { return !program_[v].isUniform(); }
  /// Whether code is made for the step in the loop.
  bool isInLoop(std::size_t i) const { return isVarying(i) && !is_fused_[i]; }
  /// A comparison that one select alone needs is done by that select, in wide code.
  bool isFused(std::size_t i) const { return is_fused_[i]; }
  /// The values that go from their registers to the frame before step i.
  const std::vector<std::size_t>& spills(std::size_t i) const { return spills_[i]; }
  /// Whether step i finds value v in the frame.
  bool isInFrame(std::size_t v, std::size_t i) const;

 private:
  unsigned numRegisters() const { return wide_ ? 32 : 16; }
  bool givesValue(std::size_t v) const { return !program_[v].stores(); }
  bool endsAt(std::int16_t v, std::size_t i) const {
    return v >= 0 && last_use_[static_cast<std::size_t>(v)] == i;
  }
  std::vector<std::size_t> dying(std::size_t i) const;
  void findOperands();
  void chooseCopies();
  void placeUniforms();
  void placeOthers();
  void spill(std::size_t i);
  void preferOperand(std::size_t i);

  const StripProgram& program_;
  const bool wide_;
  std::vector<Home> home_;
  std::vector<std::vector<std::size_t>> operands_;  ///< by step: values
  std::vector<std::size_t> uses_;
  std::vector<bool> is_fused_;
  std::vector<std::size_t> last_use_;
  std::vector<std::vector<std::size_t>> spills_;
  std::vector<std::size_t> held_;  ///< values in registers, while they are placed
  std::vector<unsigned> free_;
  unsigned num_uniforms_ = 0;
  unsigned kept_uniforms_ = 0;  ///< in registers
  unsigned num_frame_ = 0;
  unsigned copies_;
  unsigned first_ = kTemporaries;  ///< register of values that are not uniform
};

/// Whether an operation compares two values.
bool isComparison(StripOp op);

}  // namespace ipujax::engine::code
