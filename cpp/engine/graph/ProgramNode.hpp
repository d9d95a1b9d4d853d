#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/Attributes.hpp"
#include "engine/Cost.hpp"
#include "engine/Step.hpp"
#include "engine/graph/DebugContext.hpp"
#include "engine/graph/View.hpp"

namespace ipujax::engine {

/// One strided operand of a step, by variable.
struct StepOperand {
  ViewPtr view;  ///< strided, over one variable
  Access access = Access::kRead;
};

/// A host kernel with its operands and its cost on the tiles.
struct Step {
  std::string kernel;
  std::vector<StepOperand> operands;
  Attributes attributes;
  Cost cost;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> in_place;
};

enum class ProgramKind : std::uint8_t {
  kSequence,
  kStep,
  kExecute,    ///< compute sets in `ids`
  kStreamIn,   ///< stream ids[0] to tensor
  kStreamOut,  ///< tensor to stream ids[0]
  kRepeat,
  kWhile,  ///< children: condition, body; `count` = 1 to go on while true
  kIf,
  kSwitch,
  kCall,
  kPrint,
  kUndefine,  ///< what the tensor holds is not needed any more
  kError,
};

/// One node of a control program. Built by the classes of Program.hpp and by engine::emit.
struct ProgramNode {
  ProgramKind kind = ProgramKind::kSequence;
  std::vector<std::shared_ptr<ProgramNode>> children;
  Step step;
  ViewPtr view;  ///< predicate, selector, or what is streamed or printed
  std::uint64_t count = 0;
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> selectors;
  std::string text;  ///< of an error; the name of a sequence that profiles tell of
  DebugContext debug;
};

using ProgramNodePtr = std::shared_ptr<ProgramNode>;

inline ProgramNodePtr makeNode(ProgramKind kind, const DebugContext& debug) {
  auto node = std::make_shared<ProgramNode>();
  node->kind = kind;
  node->debug = debug;
  return node;
}

}  // namespace ipujax::engine
