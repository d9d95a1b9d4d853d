#include "popnn/internal/Fused.hpp"

#include <map>
#include <set>
#include <string>

#include "engine/Errors.hpp"
#include "engine/graph/GraphImpl.hpp"

namespace popnn::internal {
namespace {

namespace engine = ipujax::engine;
using engine::Cost;
using engine::GraphScope;
using engine::ProgramKind;
using engine::ProgramNode;

/// Steps of one kernel share its code.
using Code = std::map<std::string, std::uint64_t>;

Cost costOf(const ProgramNode& node, Code& code);

Cost costOfChildren(const ProgramNode& node, Code& code) {
  Cost total;
  for (const auto& child : node.children) total += costOf(*child, code);
  return total;
}

Cost dearest(const ProgramNode& node, Code& code) {
  Cost found;
  for (const auto& child : node.children) {
    const Cost cost = costOf(*child, code);
    if (cost.cycles() > found.cycles()) found = cost;
  }
  return found;
}

Cost costOf(const ProgramNode& node, Code& code) {
  switch (node.kind) {
    case ProgramKind::kStep: {
      auto& bytes = code[node.step.kernel];
      bytes = std::max(bytes, node.step.cost.code_bytes);
      return node.step.cost;
    }
    case ProgramKind::kSequence:
      return costOfChildren(node, code);
    case ProgramKind::kIf:
    case ProgramKind::kSwitch:
      return dearest(node, code);
    case ProgramKind::kRepeat:
      return repeatedCost(costOfChildren(node, code), static_cast<double>(node.count));
    default:
      throw engine::poplar_error(
          "[popnn] needs a layer of steps, branches and counted loops; got another node. Compose "
          "it of these.");
  }
}

void addVariables(const engine::View& view, std::set<std::uint32_t>& variables) {
  if (view.isStrided())
    variables.insert(view.variable);
  else
    for (const auto& piece : view.pieces->views) addVariables(piece, variables);
}

}  // namespace

Cost repeatedCost(Cost cost, double n) {
  const double first_exchange = cost.exchange_cycles - cost.repeated_exchange_cycles;
  const double first_sync = cost.sync_cycles - cost.repeated_sync_cycles;
  for (double* each : {&cost.compute_cycles, &cost.mean_compute_cycles, &cost.exchange_cycles,
                       &cost.sync_cycles, &cost.link_cycles, &cost.host_cycles,
                       &cost.exchange_bytes, &cost.link_bytes, &cost.host_bytes, &cost.flops})
    *each *= n;
  cost.repeated_exchange_cycles = cost.exchange_cycles - first_exchange;
  cost.repeated_sync_cycles = cost.sync_cycles - first_sync;
  return cost;
}

Cost costOfProgram(const poplar::program::Program& program) {
  Code code;
  const ProgramNode& node = program;
  Cost cost = costOf(node, code);
  cost.code_bytes = 0;
  for (const auto& [kernel, bytes] : code) cost.code_bytes += bytes;
  return cost;
}

FusedStep::FusedStep(poplar::Graph& graph)
    : graph_(graph), first_variable_(GraphScope(graph).impl.variables.size()) {}

FusedStep& FusedStep::adds(const Cost& cost) {
  step_.cost += cost;
  return *this;
}
FusedStep& FusedStep::reads(const poplar::Tensor& t, bool packed) {
  step_.operands.push_back({t, engine::Access::kRead, packed});
  return *this;
}
FusedStep& FusedStep::writes(const poplar::Tensor& t) {
  step_.operands.push_back({t, engine::Access::kWrite, true});
  return *this;
}

std::uint64_t FusedStep::bytesOfOthers(std::size_t end) const {
  std::set<std::uint32_t> own;
  for (const auto& use : step_.operands) addVariables(*use.view, own);
  const auto& variables = GraphScope(graph_).impl.variables;
  std::uint64_t bytes = 0;
  for (std::size_t v = first_variable_; v < end; ++v) {
    const auto& variable = variables[v];
    if (variable.is_remote || variable.is_constant || own.count(static_cast<std::uint32_t>(v)) > 0)
      continue;
    bytes += variable.map->max_per_tile * engine::sizeOf(variable.type);
  }
  return bytes;
}

void FusedStep::emit(const char* kernel, poplar::program::Sequence& prog,
                     const poplar::DebugContext& debug) {
  step_.kernel = kernel;
  const std::size_t end = GraphScope(graph_).impl.variables.size();
  step_.cost.temporary_bytes += bytesOfOthers(end);
  engine::emit(graph_, prog, std::move(step_), debug);
}

bool mayFuse(const poplar::Graph& graph) { return !GraphScope(graph).impl.traps.any(); }

}  // namespace popnn::internal
