#pragma once
#include <map>
#include <utility>

#include "engine/graph/GraphImpl.hpp"

namespace ipujax::engine::build {

/// Splits a step whose operands have parts into one step for each part.
class PartNodes {
 public:
  explicit PartNodes(GraphImpl& graph) : graph_(graph) {}

  /// Number of parts that a step has; throws graph_replication_error if it writes a view without
  /// parts.
  unsigned partsOf(const ProgramNode& node) const;
  /// The step of one part, made once. All parts run at the same time; part 0 has the step's time.
  const ProgramNode& nodeOf(const ProgramNode& node, unsigned part);

 private:
  GraphImpl& graph_;
  std::map<std::pair<const ProgramNode*, unsigned>, ProgramNodePtr> made_;
};

}  // namespace ipujax::engine::build
