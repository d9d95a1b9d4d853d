#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/Attributes.hpp"
#include "engine/Cost.hpp"
#include "engine/Errors.hpp"
#include "engine/graph/DebugContext.hpp"
#include "engine/graph/View.hpp"
#include "engine/image/Step.hpp"

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
  kWhile,  ///< children: condition, body; `count` = 1 to continue while true
  kIf,
  kSwitch,
  kCall,
  kPrint,
  kUndefine,  ///< the tensor's value is no longer needed
  kError,
};

/// One node of a control program. Built by the classes of Program.hpp and by engine::emit.
struct ProgramNode {
  ProgramNode() = default;
  ProgramNode(const ProgramNode&) = default;
  ProgramNode& operator=(const ProgramNode&) = default;
  /// Without recursion, as programs may be nested too deeply for the stack.
  ~ProgramNode() {
    std::vector<std::shared_ptr<ProgramNode>> rest = std::move(children);
    while (!rest.empty()) {
      const auto node = std::move(rest.back());
      rest.pop_back();
      if (node.use_count() != 1) continue;
      for (auto& child : node->children) rest.push_back(std::move(child));
      node->children.clear();
    }
  }

  ProgramKind kind = ProgramKind::kSequence;
  std::vector<std::shared_ptr<ProgramNode>> children;
  Step step;
  ViewPtr view;  ///< predicate, selector, or what is streamed or printed
  std::uint64_t count = 0;
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> selectors;
  std::string text;  ///< of an error; the name of a sequence in profiles
  DebugContext debug;
};

using ProgramNodePtr = std::shared_ptr<ProgramNode>;

/// Counts one level of recursion into programs while it exists.
class NestingLevel {
 public:
  explicit NestingLevel(int& depth) : depth_(depth) {
    constexpr int kMost = 2000;
    if (depth_ >= kMost)
      throw graph_recursion_error("[Program] needs programs nested at most " +
                                  std::to_string(kMost) +
                                  " deep; got more, or one within itself. Add programs to one "
                                  "Sequence, and use Repeat to run one several times.");
    ++depth_;
  }
  ~NestingLevel() { --depth_; }
  NestingLevel(const NestingLevel&) = delete;
  NestingLevel& operator=(const NestingLevel&) = delete;

 private:
  int& depth_;
};

inline ProgramNodePtr makeNode(ProgramKind kind, const DebugContext& debug) {
  auto node = std::make_shared<ProgramNode>();
  node->kind = kind;
  node->debug = debug;
  return node;
}

}  // namespace ipujax::engine
