#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/DebugContext.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/ProgramNode.hpp"
#include "engine/image/Step.hpp"

/// How a PopLibs function of the model adds its work to a program. Poplar's handles convert to the
/// types used here: a Graph to a GraphScope, a Tensor to a ViewPtr, a Program to its node.
namespace ipujax::engine {

/// One operand of a step. The kernel sees a strided view. emit copies a tensor that is not such a
/// view (a concat, some reshapes), or not row-major if `contiguous` is set, to (and, when written,
/// back from) a temporary, and charges that copy.
struct Use {
  Use(ViewPtr view, Access access, bool contiguous = false)
      : view(std::move(view)), access(access), contiguous(contiguous) {}
  /// From Poplar's Tensor, which knows its graph.
  template <class Tensor, class = decltype(std::declval<const Tensor&>().graphImpl())>
  Use(const Tensor& tensor, Access access, bool contiguous = false)
      : Use(tensor.view(), access, contiguous) {
    graph = tensor.graphImpl();
  }

  ViewPtr view;
  Access access;
  bool contiguous;
  const GraphImpl* graph = nullptr;  ///< if it is known, emit checks it
};

struct StepSpec {
  std::string kernel;  ///< a registered kernel's name
  std::vector<Use> operands;
  Attributes attributes;
  Cost cost;
  /// (read operand, written operand): correct also if both are the same memory, same view.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> in_place;
};

/// Appends the copy src -> dst (same shape and type, any views) to a Sequence node.
void appendCopy(GraphImpl& graph, ProgramNode& sequence, const ViewPtr& src, const ViewPtr& dst,
                const DebugContext& debugContext);

void emit(const GraphScope& graph, ProgramNode& sequence, StepSpec spec,
          const DebugContext& debugContext);

}  // namespace ipujax::engine
