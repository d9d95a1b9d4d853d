#include <cstring>
#include <string>

#include "engine/Kernel.hpp"
#include "poplar/Graph.hpp"
#include "poplar/GraphImpl.hpp"
#include "poplar/exceptions.hpp"

namespace poplar {
namespace {

namespace engine = ipujax::engine;

std::unique_ptr<engine::Kernel> makeReplicationIndex(const engine::StepDesc&) {
  return engine::kernelOf([](engine::RunContext& context, std::span<std::byte* const> pointers) {
    std::memcpy(pointers[0], &context.replica, sizeof context.replica);
  });
}

void checkReplicationIndex(engine::StepCheck& check) {
  check.operands(1);
  check.written(0).isOne().isOfBytes(4);
}
const engine::RegisterKernel kReplicationIndex{"poplar.replicationIndex", makeReplicationIndex,
                                               checkReplicationIndex};

/// What one of `r` replicas has of the target's IPUs.
Target shareOf(const Target& target, unsigned r) {
  if (r == 0 || target.getNumIPUs() % r != 0) {
    throw poplar_error("[Graph] needs a target whose IPUs the replicas share evenly; got " +
                       std::to_string(target.getNumIPUs()) + " IPUs for " + std::to_string(r) +
                       " replicas. Use a number of IPUs that is a multiple of that.");
  }
  return target.withTiles(target.getNumIPUs() / r, target.getTilesPerIPU());
}

}  // namespace

Graph::Graph(const Target& target, replication_factor r) : Graph(shareOf(target, r)) {
  impl_->replication_factor = r;
}
Graph::Graph(const Device& device, replication_factor r) : Graph(device.getTarget(), r) {}

unsigned Graph::getReplicationFactor() const { return impl_->replication_factor; }

Tensor Graph::addReplicationIndexConstant(const DebugContext& debugContext) {
  Tensor index = addVariable(UNSIGNED_INT, {}, debugContext);
  getTopLevelGraph().setTileMapping(index, 0);
  impl_->replication_indices.push_back(index);
  return index;
}

}  // namespace poplar
