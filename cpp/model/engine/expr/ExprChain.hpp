#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/expr/ExprPlan.hpp"

/// Which steps of a plan run as machine code made for them (engine/code). Internal to engine/expr.
namespace ipujax::engine::expr {

/// A step before places are known; operands and result are value numbers.
struct VirtualStep {
  Step step;
  Op op = Op::kCount;  ///< what step.fn does; kCount if it is not an operation on values
  ElementType operand = ElementType::kFloat;
  ElementType result = ElementType::kFloat;
  std::int32_t args[3] = {-1, -1, -1};
  std::int32_t out = -1;     ///< a value, or
  std::int32_t output = -1;  ///< an output
};

/// What chains need to know of a value.
struct ValueTraits {
  bool scalar = false;  ///< one element, in memory
  bool direct = false;  ///< its memory is an output
  ElementType type = ElementType::kFloat;
  std::optional<std::uint64_t> constant;  ///< bits
};

/// Steps [begin, end) as one piece of code, which names its memory by numbers.
struct VirtualChain {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::shared_ptr<const code::Code> code;
  struct Memory {
    std::int32_t value = -1;   ///< where this value lies, or
    std::int32_t output = -1;  ///< this output, or
    Place place;               ///< this place
    std::uint8_t bytes = 4;    ///< of an element
    bool written = false;
    bool liesWhere(const Memory& m) const {
      return value == m.value && output == m.output && place == m.place;
    }
  };
  std::vector<Memory> memory;
};

/// While one exists, plans made on its thread have no chains, so that tests can compare runs with
/// and without chains.
class WithoutChains {
 public:
  WithoutChains();
  ~WithoutChains();
  WithoutChains(const WithoutChains&) = delete;
};

/// Whether machine code may be made on this thread, and can be.
bool mayMakeCode();

/// Reorders independent steps so that a result is used by the next one where possible.
void orderForChains(std::vector<VirtualStep>& steps, std::size_t num_values);

/// Finds the chains. `stays[v]` becomes true for values that live in registers only.
std::vector<VirtualChain> findChains(const std::vector<VirtualStep>& steps,
                                     const std::vector<ValueTraits>& values,
                                     std::vector<bool>& stays);

}  // namespace ipujax::engine::expr
