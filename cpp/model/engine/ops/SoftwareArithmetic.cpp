#include "engine/ops/SoftwareArithmetic.hpp"

/// Our own estimates: nobody has published such code for an IPU. They count the instructions of
/// portable software floating point (Berkeley SoftFloat's double add, multiply, divide, square
/// root) on a 32-bit worker, one instruction per worker cycle; libm functions count as 12 double
/// additions and products and one division.
namespace ipujax::engine {
namespace {

using expr::Op;

constexpr double kDoubleAdd = 60, kDoubleMultiply = 80, kDoubleDivide = 350, kDoubleRoot = 450;
constexpr double kDoubleCompare = 14, kDoubleBits = 5, kDoubleRound = 30;
constexpr double kDoubleFunction = 12 * (kDoubleAdd + kDoubleMultiply) + kDoubleDivide;
constexpr double kWordsPair = 8, kWordsShift = 16, kWordsMultiply = 24, kWordsDivide = 600;

struct Cycles {
  double f64 = kDoubleFunction;
  double i64 = kWordsPair;
};
constexpr Cycles kCycles[] = {
#define OP(Name, name, operands, traits, api, cycles) \
  [] {                                                \
    Cycles c;                                         \
    cycles return c;                                  \
  }(),
#define F64(cycles) c.f64 = cycles;
#define I64(cycles) c.i64 = cycles;
#include "engine/ops/ElementwiseOps.def"
};
}  // namespace

double softwareCycles(Op op, ElementType type) {
  const Cycles& cycles = kCycles[static_cast<std::size_t>(op)];
  return type == ElementType::kDouble ? cycles.f64 : cycles.i64;
}

double softwareAddCycles(ElementType type) { return softwareCycles(Op::kAdd, type); }

double softwareMultiplyAddCycles(ElementType type) {
  return softwareCycles(Op::kMultiply, type) + softwareCycles(Op::kAdd, type);
}

}  // namespace ipujax::engine
