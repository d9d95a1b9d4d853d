#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/Step.hpp"
#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

/// What lies behind the public API: how a PopLibs function of the model adds its work to a program.
namespace ipujax::engine {

/// One operand of a step. The kernel sees a strided view; a tensor that is no such view (a concat,
/// some reshapes), or that is not row-major where `contiguous` is asked for, is copied to (and,
/// when written, back from) a temporary by emit, and that copy is charged.
struct Use {
  poplar::Tensor tensor;
  Access access = Access::kRead;
  bool contiguous = false;
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
void appendCopy(poplar::GraphImpl& graph, poplar::ProgramNode& sequence, const poplar::Tensor& src,
                const poplar::Tensor& dst, const poplar::DebugContext& debugContext);

void emit(poplar::Graph& graph, poplar::program::Sequence& prog, StepSpec spec,
          const poplar::DebugContext& debugContext);

}  // namespace ipujax::engine
