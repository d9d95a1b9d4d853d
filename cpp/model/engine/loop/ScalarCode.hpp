#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/loop/LoopCode.hpp"
#include "engine/loop/LoopKernel.hpp"

namespace ipujax::engine::loop {

/// Threaded code that is assembled once and gets the addresses of its memory for each run.
/// Immutable and re-entrant once it is complete.
class ScalarCode {
 public:
  using Function = simd::ScalarOp::Function;
  using Operands = CodeOperands;

  explicit ScalarCode(const Image& image) : image_(&image) {}

  /// The element at index 0 of an operand of a step. Operands in one buffer have the same base.
  Place operand(std::uint64_t step, std::size_t number);
  /// All pointers of a step.
  Place operands(std::uint64_t step);
  Place predicate(std::uint32_t node);
  /// Memory that lives as long as the code.
  Place fixed(const void* address);
  /// A value of up to eight bytes that never changes.
  Place constant(std::uint64_t bits) { return record({static_cast<std::int64_t>(bits)}); }
  Place record(std::span<const std::int64_t> values);
  Place record(std::initializer_list<std::int64_t> values) {
    return record(std::span(values.begin(), values.size()));
  }
  void setRecord(const Place& record, std::size_t number, std::int64_t value) {
    constants_[static_cast<std::size_t>(record.offset) / 8 + number] = value;
  }
  /// Eight bytes for a value, until `freeSlots`.
  Place slot();
  void freeSlots() { num_used_slots_ = 0; }

  /// Returns the operation's number.
  std::size_t add(Function function, const Operands& operands, std::int64_t immediate = 0,
                  const Meaning& meaning = {});
  /// out <- a, `bytes` of them.
  void addCopy(const Place& a, const Place& out, std::size_t bytes);
  /// An operation that findScalar knows.
  void addValue(const simd::MapKey& key, const Operands& operands);
  /// An operation chosen by whether its operand a is held; it gives a value of `type`.
  template <class F>
  void addHolding(ElementType a, ElementType type, const F& functionOf, const Operands& operands,
                  const Meaning& meaning) {
    const auto function = functionOf(isHeld(a, operands.a));
    add(function, operands, 0, meaning);
    setHeld(type, operands.out);
  }
  std::size_t size() const { return ops_.size(); }
  /// Call this once it is complete: makes machine code of it, where there can be any.
  void finish();

  void run(LoopRun& run) const;

 private:
  enum class Kind : std::uint8_t { kConstants, kSlots, kOperand, kOperands, kPredicate, kFixed };
  struct Base {
    Kind kind = Kind::kConstants;
    std::uint64_t of = 0;    ///< a step, a node, an address or a buffer
    std::uint64_t step = 0;  ///< whose operand `number` begins `before` bytes after the buffer does
    std::size_t number = 0;
    std::int64_t before = 0;
  };
  Place placeAt(const Base& base);
  bool isHeld(ElementType type, const Place& place) const {
    return held_[simd::isHeldAsNumber(type)] == place;
  }
  void setHeld(ElementType type, const Place& place);
  /// Called when the memory there is overwritten.
  void forget(const Place& place, std::int64_t bytes);

  void runFunctions(LoopRun& run, std::byte* const* bases) const;
  void runCode(LoopRun& run, std::byte* const* bases) const;
  static std::byte* addressOf(const Base& base, const ReplicaBindings& bindings);

  const Image* image_;  ///< while the code is assembled
  std::vector<CodeOp> ops_;
  LoopCode code_;  ///< without code, the functions run, one after the other
  std::vector<Base> bases_{{Kind::kConstants}, {Kind::kSlots}};
  std::vector<std::int64_t> constants_{0};
  std::size_t num_used_slots_ = 0;
  std::size_t num_slots_ = 0;
  std::optional<Place> held_[2];  ///< values in registers: the integer's, the number's
};

}  // namespace ipujax::engine::loop
