#include <ostream>

#include "engine/codelets/VertexStore.hpp"
#include "engine/graph/GraphImpl.hpp"
#include "engine/graph/ProgramNode.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

// Programs and vertices in readable form: as indented text, and as Graphviz graphs.
namespace poplar {
namespace {

using ipujax::engine::NestingLevel;
using ipujax::engine::ProgramKind;
using ipujax::engine::ProgramNode;

/// Names steps after the SDK programs that they stand for.
const char* nameOf(const ProgramNode& node) {
  switch (node.kind) {
    case ProgramKind::kSequence:
      return "Sequence";
    case ProgramKind::kStep:
      return node.step.kernel == "engine.copy" ? "Copy" : "Execute";
    case ProgramKind::kExecute:
      return "Execute";
    case ProgramKind::kStreamIn:
      return "CopyFromHost";
    case ProgramKind::kStreamOut:
      return "CopyToHost";
    case ProgramKind::kRepeat:
      return "Repeat";
    case ProgramKind::kWhile:
      return "RepeatWhile";
    case ProgramKind::kIf:
      return "If";
    case ProgramKind::kSwitch:
      return "Switch";
    case ProgramKind::kCall:
      return "Call";
    case ProgramKind::kPrint:
      return "PrintTensor";
    case ProgramKind::kUndefine:
      return "WriteUndef";
    case ProgramKind::kError:
      return "ErrorProgram";
  }
  return "unknown";
}

void dump(const ProgramNode& node, int& depth, std::ostream& out) {
  const std::string path = node.debug.getPathName();
  out << std::string(2 * static_cast<std::size_t>(depth), ' ') << nameOf(node);
  const NestingLevel level(depth);
  if (!node.step.kernel.empty() && node.step.kernel != "engine.copy")
    out << " " << node.step.kernel;
  if (!path.empty()) out << " '" << path << "'";
  if (node.kind == ProgramKind::kRepeat) out << " x " << node.count;
  out << "\n";
  for (const auto& child : node.children) dump(*child, depth, out);
}

/// A quoted string of Graphviz.
std::string quoted(const std::string& text) {
  std::string label = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') label += '\\';
    label += c == '\n' ? ' ' : c;
  }
  return label + "\"";
}

/// Draws a program's nodes in execution order, each below its parent; nodes that execute compute
/// sets point to them.
class ProgramDrawing {
 public:
  explicit ProgramDrawing(std::ostream& out) : out_(out) {}

  void draw(const ProgramNode& node, const std::string& parent) {
    const NestingLevel level(depth_);
    const std::string id = "p" + std::to_string(count_++), path = node.debug.getPathName();
    const std::string kind = nameOf(node);
    out_ << "  " << id << " [label=" << quoted(path.empty() ? kind : kind + " " + path) << "];\n"
         << "  " << parent << " -> " << id << ";\n";
    if (node.kind == ProgramKind::kExecute)
      for (const auto set : node.ids) out_ << "  " << id << " -> cs" << set << ";\n";
    for (const auto& child : node.children) draw(*child, id);
  }

 private:
  std::ostream& out_;
  std::size_t count_ = 0;
  int depth_ = 0;
};

}  // namespace

void program::dumpProgram(const Graph&, const Program& program, std::ostream& out) {
  int depth = 0;
  if (program.node()) dump(*program.node(), depth, out);
}

void Graph::outputVertexGraph(std::ostream& out, ArrayRef<program::Program>) const {
  out << "digraph vertices {\n";
  const ipujax::engine::VertexStore none;
  const auto& store = impl().vertices ? *impl().vertices : none;
  for (std::size_t i = 0; i < store.vertices.size(); ++i) {
    const auto& vertex = store.vertices[i];
    out << "  v" << i << " [label=\"" << vertex.type << "\"];\n";
    for (const auto& [field, edge] : vertex.edges) {
      for (const auto& view : edge.views) {
        if (view)
          out << "  t" << view->variable << " -> v" << i << " [label=\"" << field << "\"];\n";
      }
    }
  }
  out << "}\n";
}

void Graph::outputComputeGraph(std::ostream& out, ArrayRef<program::Program> progs) const {
  out << "digraph computation {\n";
  if (impl().vertices) {
    const auto& sets = impl().vertices->compute_sets;
    for (std::size_t i = 0; i < sets.size(); ++i)
      out << "  cs" << i << " [label="
          << quoted(sets[i].debug.getPathName() + ": " + std::to_string(sets[i].vertices.size()) +
                    " vertices")
          << "];\n";
  }
  ProgramDrawing drawing(out);
  for (std::size_t i = 0; i < progs.size(); ++i) {
    const std::string id = "program" + std::to_string(i);
    out << "  " << id << ";\n";
    if (progs[i].node()) drawing.draw(*progs[i].node(), id);
  }
  out << "}\n";
}

}  // namespace poplar
