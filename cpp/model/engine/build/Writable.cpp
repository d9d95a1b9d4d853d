#include "engine/build/Writable.hpp"

#include <string>

#include "engine/Errors.hpp"
#include "engine/graph/ProgramNode.hpp"

namespace ipujax::engine::build {
namespace {

std::string quoted(const DebugContext& debug, const char* unnamed) {
  const std::string name = debug.getPathName();
  return name.empty() ? unnamed : "'" + name + "'";
}

bool repeats(const View& view) {
  for (std::size_t i = 0; i < view.shape.size(); ++i)
    if (view.shape[i] > 1 && view.strides[i] == 0) return true;
  return false;
}

}  // namespace

void needWritable(const GraphImpl& graph, const ProgramNode& node) {
  for (const auto& o : node.step.operands) {
    if (o.access == Access::kRead || o.view->numElements() == 0 || !o.view->isStrided()) continue;
    const Variable& variable = graph.variables[o.view->variable];
    if (!variable.is_constant && !repeats(*o.view)) continue;
    const std::string tensor = quoted(variable.debug, "without a name") + " (" +
                               nameOf(variable.type) + " " + shapeText(o.view->shape) + ")";
    const std::string writer = quoted(node.debug, "a program without a name");
    throw graph_program_compilation_error(
        variable.is_constant
            ? "[compileGraph] needs programs that write to no constant; got " + writer +
                  ", which writes to the constant " + tensor +
                  ". Write to a variable (Graph::addVariable)."
            : "[compileGraph] needs programs that write to no element twice; got " + writer +
                  ", which writes to repeated elements of the tensor " + tensor +
                  ". Write to the tensor before it is broadcast.");
  }
}

}  // namespace ipujax::engine::build
