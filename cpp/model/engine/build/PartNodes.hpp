#pragma once
#include <map>
#include <utility>

#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine::build {

/// The steps that a step becomes whose operands have parts: one for each of them.
class PartNodes {
 public:
  explicit PartNodes(GraphImpl& graph) : graph_(graph) {}

  /// How many parts a step runs in; throws graph_replication_error where it writes what has none.
  unsigned partsOf(const ProgramNode& node) const;
  /// The step of one part, made once. All parts run at one time: part 0 has the time of the step.
  const ProgramNode& nodeOf(const ProgramNode& node, unsigned part);

 private:
  GraphImpl& graph_;
  std::map<std::pair<const ProgramNode*, unsigned>, ProgramNodePtr> made_;
};

}  // namespace ipujax::engine::build
