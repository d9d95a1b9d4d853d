#pragma once
#include <cstddef>
#include <optional>

#include "engine/kernels/move/CopyWindows.hpp"
#include "engine/simd/ScalarOps.hpp"

/// Operations of threaded code other than those on values, each with its operands. "Word k": the
/// k-th std::int64_t of a record.
namespace ipujax::engine::loop::scalar {

using Function = simd::ScalarOp::Function;
using simd::ScalarOp;

/// Ends a piece of code.
void end(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
/// Runs the code after it `immediate` times. c: word 0 is the distance to the code after the loop.
void repeat(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
/// Runs the condition after it, then, as long as `a` tells, the body and the condition. c: the
/// distances to the body and to the code after the loop; the value of `a` to continue; the node.
void repeatWhile(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
/// a: the predicate. c: the distances to the other branch and to the code after both.
void branch(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
/// a: the selector, of `bytes` bytes. c: the distance to the code after all cases; then the value
/// of each of the `immediate` cases and its distance; last the distance to the default.
Function choose(std::size_t bytes);
/// a: the pointers of a step, `immediate` of them. b: its Kernel.
void kernel(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
/// Runs a loop with its own LoopKernel, which is b.
void loopKernel(const ScalarOp* op, LoopRun* run, std::uint64_t, float);

/// out <- the loop of findMap, of one or two operands. c: the loop, and its immediate.
void mapLoop(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
void halfToFloat(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
void floatToHalf(const ScalarOp* op, LoopRun* run, std::uint64_t, float);
void roundToHalf(const ScalarOp* op, LoopRun* run, std::uint64_t, float);  ///< the float at `out`

/// Whether this number of bytes is moved as one value. Operations take other numbers of bytes as
/// the immediate.
constexpr bool isWord(std::size_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}
/// out <- a. Leaves the registers as they are.
Function copyOf(std::size_t bytes);

/// out: the address of b, or the one that b holds, moved by the index a. c: the largest index, and
/// the bytes per index. Other indices are clamped, wrap around, or make the address null.
Function locate(ElementType index, Outside outside, bool from_address);
/// out <- the value at the address in a; for words, `immediate` bytes after it.
Function loadAt(std::size_t bytes);
Function storeAt(std::size_t bytes);  ///< the reverse: out holds the address; null: nothing
/// out <- the element of b at index a, which is a kInt32 or kUInt32, is clamped, and may be `held`;
/// c as above.
Function loadElement(ElementType index, ElementType type, bool held);

}  // namespace ipujax::engine::loop::scalar
