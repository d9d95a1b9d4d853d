#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/Workspace.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/image/StepCheck.hpp"

namespace ipujax::engine {

/// A reduction's body made ready to run over blocks of k accumulators at a time. Immutable; the
/// buffers are the calling thread's.
class ReduceBody {
 public:
  static constexpr std::int64_t kLanes = expr::ExprEvaluator::kBlock;
  /// Checks a step with k inputs of one shape, k contiguous outputs and k initial values, in this
  /// order, and a body "expr" of their types. Returns k.
  static std::size_t check(const StepCheck& check);

  explicit ReduceBody(const expr::ExprProgram& program);
  std::size_t numValues() const { return bytes_.size(); }
  std::size_t bytes(std::size_t i) const { return bytes_[i]; }

  /// out[i][l] = body(a, b)[i][l], l < n <= kLanes; out does not overlap a or b. `scratch` is from
  /// `scratchIn`.
  void apply(const std::byte* const* a, const std::byte* const* b, std::byte* const* out,
             std::int64_t n, std::byte* scratch) const;
  std::byte* scratchIn(Workspace& workspace) const;

 private:
  expr::ExprEvaluator evaluator_;
  std::vector<std::size_t> bytes_;
};

/// Two sets of k blocks of `lanes` values that take turns as source and destination. Lives for one
/// task, in the thread's scratch memory.
class TurnBuffers {
 public:
  static constexpr std::size_t kMaxValues = 16;
  TurnBuffers(const ReduceBody& body, std::int64_t lanes, Workspace& workspace);
  std::byte* const* now() const { return blocks_[turn_]; }
  std::byte* const* next() const { return blocks_[1 - turn_]; }
  void flip() { turn_ = 1 - turn_; }

 private:
  std::byte* blocks_[2][kMaxValues];
  int turn_ = 0;
};

/// Combines n values per buffer, in order, pairwise, until one is left in now()[i][0]. `left` and
/// `right` are memory for the two sides of the pairs.
void foldLanes(const ReduceBody& body, TurnBuffers& values, std::byte* const* left,
               std::byte* const* right, std::int64_t n, std::byte* scratch);

}  // namespace ipujax::engine
