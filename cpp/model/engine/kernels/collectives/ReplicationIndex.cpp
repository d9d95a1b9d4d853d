#include <cstring>

#include "engine/kernels/Kernel.hpp"

namespace ipujax::engine {
namespace {

std::unique_ptr<Kernel> makeReplicationIndex(const StepDesc&) {
  return kernelOf([](RunContext& context, std::span<std::byte* const> pointers) {
    std::memcpy(pointers[0], &context.replica, sizeof context.replica);
  });
}

void checkReplicationIndex(StepCheck& check) {
  check.operands(1);
  check.written(0).isOne().isOfBytes(4);
}
const RegisterKernel kReplicationIndex{"engine.replication_index", makeReplicationIndex,
                                       checkReplicationIndex};

}  // namespace
}  // namespace ipujax::engine
