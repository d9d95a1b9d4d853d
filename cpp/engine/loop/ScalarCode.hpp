#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "engine/loop/LoopKernel.hpp"
#include "engine/simd/ScalarOps.hpp"

namespace ipujax::engine::loop {

/// A byte that only a run knows the address of.
struct Place {
  std::uint32_t base = 0;
  std::int64_t offset = 0;  ///< bytes
  Place at(std::int64_t bytes) const { return {base, offset + bytes}; }
};

/// Threaded code that is put together once, and for each run gets the addresses of its memory.
/// Immutable once it is complete, and then re-entrant.
class ScalarCode {
 public:
  using Function = simd::ScalarOp::Function;
  struct Operands {
    Place a{}, b{}, c{}, out{};
  };

  /// The element at index 0 of an operand of a step.
  Place operand(std::uint64_t step, std::size_t number);
  /// All pointers of a step.
  Place operands(std::uint64_t step);
  Place predicate(std::uint32_t node);
  /// Memory that lives as long as the code.
  Place fixed(const void* address);
  /// A value of up to eight bytes that never changes.
  Place constant(std::uint64_t bits) { return record({static_cast<std::int64_t>(bits)}); }
  Place record(std::initializer_list<std::int64_t> values);
  void setRecord(const Place& record, std::size_t number, std::int64_t value) {
    constants_[static_cast<std::size_t>(record.offset) / 8 + number] = value;
  }
  /// Eight bytes for a value, until `freeSlots`.
  Place slot();
  void freeSlots() { num_used_slots_ = 0; }

  /// Returns the operation's number.
  std::size_t add(Function function, const Operands& operands, std::int64_t immediate = 0);
  std::size_t size() const { return ops_.size(); }

  void run(LoopRun& run) const;

 private:
  enum class Kind : std::uint8_t { kConstants, kSlots, kOperand, kOperands, kPredicate, kFixed };
  struct Base {
    Kind kind = Kind::kConstants;
    std::uint64_t of = 0;  ///< a step, a node or an address
    std::size_t number = 0;
    friend bool operator==(const Base&, const Base&) = default;
  };
  struct Op {
    Function function;
    Operands operands;
    std::int64_t immediate;
  };
  Place placeAt(const Base& base);
  static std::byte* addressOf(const Base& base, const ReplicaBindings& bindings);

  std::vector<Op> ops_;
  std::vector<Base> bases_{{Kind::kConstants, 0, 0}, {Kind::kSlots, 0, 0}};
  std::vector<std::int64_t> constants_{0};
  std::size_t num_used_slots_ = 0;
  std::size_t num_slots_ = 0;
};

}  // namespace ipujax::engine::loop
