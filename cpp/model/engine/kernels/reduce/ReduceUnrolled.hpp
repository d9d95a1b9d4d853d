#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/expr/ExprProgram.hpp"
#include "engine/image/Step.hpp"

namespace ipujax::engine {

/// Computes a "popx.reduce" of a few values for each of a few results as one expression: all values
/// in turn, then the initial ones, in the order in which VariadicReduce applies the body to lanes.
class UnrolledReduce {
 public:
  /// Null if there is too much to do for one expression, or if the inputs of consecutive results
  /// are not adjacent.
  static std::unique_ptr<const UnrolledReduce> make(const StepDesc& step,
                                                    const expr::ExprProgram& body);
  void run(std::span<std::byte* const> pointers) const;

 private:
  struct Source {
    std::size_t operand;
    std::int64_t offset;  ///< bytes
  };
  UnrolledReduce(const expr::ExprProgram& program, const std::vector<bool>& uniform,
                 std::vector<Source> inputs, std::size_t num_outputs, std::int64_t lanes)
      : evaluator_(program, uniform),
        inputs_(std::move(inputs)),
        num_outputs_(num_outputs),
        lanes_(lanes) {}

  expr::ExprEvaluator evaluator_;
  std::vector<Source> inputs_;
  std::size_t num_outputs_;
  std::int64_t lanes_;
};

}  // namespace ipujax::engine
