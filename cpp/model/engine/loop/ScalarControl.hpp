#pragma once
#include <cstddef>
#include <optional>

#include "engine/kernels/move/CopyWindows.hpp"
#include "engine/simd/ScalarOps.hpp"

/// Operations of threaded code other than those of values: what they take stands beside each.
/// "Word k": the k-th std::int64_t of a record.
namespace ipujax::engine::loop::scalar {

using Function = simd::ScalarOp::Function;
using simd::ScalarOp;

/// The code between here and where it was begun is done.
void end(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
/// Runs the code behind it `immediate` times. c: word 0 is the distance to what follows the loop.
void repeat(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
/// Runs the condition behind it, then, as long as `a` holds, a body and the condition. c: the
/// distances to body and what follows; the value of `a` that goes on; the node.
void repeatWhile(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
/// a: the predicate. c: the distances to the other branch and to what follows both.
void branch(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
/// a: the pointers of a step, `immediate` of them. b: its Kernel.
void kernel(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
/// A loop that has a LoopKernel of its own. b: that.
void loopKernel(const ScalarOp* op, LoopRun* run, std::uint64_t, float);

/// out <- the loop of findMap, of one or two operands. c: the loop, and its immediate.
void mapLoop(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
void halfToFloat(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
void floatToHalf(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
void roundToHalf(const ScalarOp* op, LoopRun* run, std::uint64_t, float);  ///< the float at `out`

/// Bytes that are moved as one value. Where an operation takes other numbers, they are the
/// immediate.
constexpr bool isWord(std::size_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}
/// out <- a. Leaves the registers as they are.
Function copyOf(std::size_t bytes);

/// out: the address that b begins at, or b holds, moved by the index a. c: the largest index, and
/// the bytes of one. What lies outside is clamped, wraps around, or makes the address null.
Function locate(ElementType index, Outside outside, bool from_address);
/// out <- what the address in a leads to; of words: `immediate` bytes from there.
Function loadAt(std::size_t bytes);
Function storeAt(std::size_t bytes);  ///< the other way: out holds the address; null: nothing
/// out <- the element of b at index a, which is a kInt32 or kUInt32, and may be `held`; c as above.
/// Clamped.
Function loadElement(ElementType index, ElementType type, bool held);

}  // namespace ipujax::engine::loop::scalar
