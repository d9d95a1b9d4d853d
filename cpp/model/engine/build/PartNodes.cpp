#include "engine/build/PartNodes.hpp"

#include <algorithm>
#include <string>

#include "engine/Errors.hpp"
#include "engine/kernels/Kernel.hpp"

namespace ipujax::engine::build {
namespace {

[[noreturn]] void refuse(const ProgramNode& node, const std::string& needs) {
  throw graph_replication_error("[createReplicatedGraph] the step '" + node.step.kernel + "' of '" +
                                node.debug.getPathName() + "' needs " + needs);
}

void passNoTime(Cost& cost) {
  cost.compute_cycles = 0;
  cost.mean_compute_cycles = 0;
  cost.exchange_cycles = 0;
  cost.sync_cycles = 0;
  cost.repeated_exchange_cycles = 0;
  cost.repeated_sync_cycles = 0;
  cost.link_cycles = 0;
  cost.host_cycles = 0;
}

}  // namespace

unsigned PartNodes::partsOf(const ProgramNode& node) const {
  const auto& operands = node.step.operands;
  unsigned parts = 1;
  for (const auto& o : operands) parts = std::max(parts, graph_.partsOf(*o.view));
  if (parts == 1) return 1;
  const auto role = KernelRegistry::instance().roleOf(node.step.kernel);
  if (role == KernelRole::kCollective)
    refuse(node, "replicas of the whole program; got parts of one. Use replication_factor.");
  for (const auto& o : operands) {
    if (o.access == Access::kRead || graph_.partsOf(*o.view) == parts) continue;
    refuse(node,
           "its result in the replicated graph of its operands; got a tensor outside of it. Copy "
           "from getNonReplicatedTensor.");
  }
  return parts;
}

const ProgramNode& PartNodes::nodeOf(const ProgramNode& node, unsigned part) {
  ProgramNodePtr& made = made_[{&node, part}];
  if (made) return *made;
  made = std::make_shared<ProgramNode>(node);
  for (auto& o : made->step.operands) o.view = graph_.partOf(o.view, part);
  if (part > 0) passNoTime(made->step.cost);
  return *made;
}

}  // namespace ipujax::engine::build
