#pragma once
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "engine/code/CodeMemory.hpp"
#include "engine/loop/CodeOp.hpp"

/// Threaded code as machine code: what it does to memory is the same, but nothing is dispatched,
/// and results of 32 bits stay in registers until control may go elsewhere.
namespace ipujax::engine::loop {

struct LoopCode {
  std::shared_ptr<const code::Code> code;  ///< null if none can be made here
  std::vector<std::size_t> called;         ///< the operations whose functions it calls
};
/// `ops` are all operations; `constants` is what base 0 points to in a run, and gets the numbers
/// that the code needs.
LoopCode loopCode(std::span<const CodeOp> ops, std::vector<std::int64_t>& constants);

/// What the code gets besides the bases: the run, the operations with their addresses, and room for
/// an exception of one that it calls.
struct LoopState {
  LoopRun* run;
  const simd::ScalarOp* ops;  ///< two for each of `called`; the second one ends it
  const std::atomic<bool>* cancelled;
  std::exception_ptr error;
};

}  // namespace ipujax::engine::loop
