#pragma once
#include <cstdint>
#include <optional>

#include "engine/ElementType.hpp"
#include "engine/Reducer.hpp"
#include "engine/expr/ExprProgram.hpp"
#include "engine/simd/Isa.hpp"

/// The vector loops that all reductions of the model use: popops::reduce, windows, pooling.
namespace ipujax::engine {
class StepCheck;
}

namespace ipujax::engine::reduction {

/// The reducer that a program of two inputs computes, if it has loops for their type.
std::optional<Reducer> reducerOf(const expr::ExprProgram& body);

/// Loops over one input type. Accumulators are of type `acc`: float for kHalf and kFloat, else the
/// input's own. The order of combination depends on the sizes only, never on the CPU or threads.
struct Loops {
  ElementType acc = ElementType::kFloat;
  std::uint64_t identity = 0;  ///< bits of the value that changes nothing
  /// *acc = op(*acc, combination of x[0..n)), float sums pairwise.
  void (*row)(const void* x, std::int64_t n, void* acc) = nullptr;
  /// acc[r * acc_stride] = combination of x[r * row_stride .. + n), r < rows; n <= 4096.
  void (*rows)(const void* x, std::int64_t row_stride, std::int64_t rows, std::int64_t n, void* acc,
               std::int64_t acc_stride) = nullptr;
  /// acc[c] = op(acc[c], x[r * row_stride + c]) for all r, c.
  void (*column)(const void* x, std::int64_t row_stride, std::int64_t rows, void* acc,
                 std::int64_t columns) = nullptr;
  /// acc[k] = op(acc[k], x[k * stride]).
  void (*accumulate)(const void* x, std::int64_t stride, void* acc, std::int64_t n) = nullptr;
  /// acc[k] = op(acc[k], other[k]), both accumulators.
  void (*merge)(const void* other, void* acc, std::int64_t n) = nullptr;
  /// values[k] = op(values[0], ..., values[k]): accumulators, in place.
  void (*scan)(void* values, std::int64_t n) = nullptr;
};

/// The elements under one window, for lanes of windows `lane_stride` elements apart.
struct TapBlock {
  const void* x = nullptr;
  std::int64_t lane_stride = 1;
  std::int64_t rows = 1, row_stride = 0;
  std::int64_t columns = 1, column_stride = 0;
};
/// acc[l] = combination of x[r * row_stride + c * column_stride + l * lane_stride], all r, c.
using TapLoop = void (*)(const TapBlock& block, void* acc, std::int64_t lanes);
struct TapTable {
  TapLoop loops[kNumReducers][12];
};
IPUJAX_DECLARE_SIMD(const TapTable& tapTable())
/// Null if there is no such loop; the loops of loopsFor then do the same work.
TapLoop tapLoopFor(Reducer reducer, ElementType input);

/// All loops of one instruction set, by reducer and input type; `row` is null where there are none.
struct LoopTable {
  Loops loops[kNumReducers][12];
};
IPUJAX_DECLARE_SIMD(const LoopTable& loopTable())

/// Null where the reducer has no meaning for the type (kLogAdd of integers, kAnd of floats).
const Loops* loopsFor(Reducer reducer, ElementType input);
/// The loops of a step's attribute "reducer".
const Loops& checkReducer(const StepCheck& check, ElementType input);
/// Number of elements of operand 0 along the dimensions that are not in the attribute "dims".
std::int64_t checkKept(const StepCheck& check);
/// An element in memory converted to an accumulator, as bits.
std::uint64_t accumulatorOf(const std::byte* element, ElementType type, const Loops& loops);
/// Whether it is a sum of floats, which never adds more than a few elements one after the other.
bool isRoundingSum(Reducer reducer, const Loops& loops);

}  // namespace ipujax::engine::reduction
