#pragma once
#include <utility>
#include <vector>

#include "engine/Cost.hpp"
#include "engine/graph/Emit.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

/// A layer as one step. On the tiles it is a composition of public calls, whose cost the step has;
/// the model runs one kernel for the whole loop.
namespace popnn::internal {

/// The cost of all that a program runs. The most expensive branch counts; loops must have a fixed
/// number of iterations.
ipujax::engine::Cost costOfProgram(const poplar::program::Program& program);

/// The cost of n iterations: those after the first run the exchange code of the first.
ipujax::engine::Cost repeatedCost(ipujax::engine::Cost cost, double n);

/// Composes a layer outside the program, for its cost and its results, then adds the kernel
/// instead.
class FusedStep {
 public:
  explicit FusedStep(poplar::Graph& graph);

  /// `compose(Sequence&)` adds the composition to a program that is never run.
  template <class F>
  auto compose(const F& compose) {
    poplar::program::Sequence composed;
    auto results = compose(composed);
    step_.cost = costOfProgram(composed);
    return results;
  }
  /// Adds a cost to the composition's.
  FusedStep& adds(const ipujax::engine::Cost& cost);
  /// Operands in the kernel's order; those that are `packed` are row-major.
  FusedStep& reads(const poplar::Tensor& t, bool packed = true);
  FusedStep& writes(const poplar::Tensor& t);
  ipujax::engine::Attributes& attributes() { return step_.attributes; }
  /// Adds the step; the composition's own variables are temporaries of it.
  void emit(const char* kernel, poplar::program::Sequence& prog, const poplar::DebugContext& debug);

 private:
  std::uint64_t bytesOfOthers(std::size_t end) const;

  poplar::Graph& graph_;
  std::size_t first_variable_;
  ipujax::engine::StepSpec step_;
};

/// Whether arithmetic may be regrouped; not if steps trap, which must then be the IPU's steps.
bool mayFuse(const poplar::Graph& graph);

}  // namespace popnn::internal
