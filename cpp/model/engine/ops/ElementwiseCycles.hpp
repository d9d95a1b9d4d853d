#pragma once
#include <cmath>
#include <cstdint>

#include "engine/ElementType.hpp"
#include "engine/ops/ExprOp.hpp"

/// Costs of elementwise vertices on a tile, by PopLibs' estimators (popopsCycleEstimators.cpp):
/// for popops' functions and for the codelets of its vertices, which are compiled as C++17.
/// Integers of 64 bits and doubles, which an IPU computes in software, are not here.
namespace ipujax::engine::expr {

/// Tile cycles around a vertex that the estimators leave out: fetching and starting its six
/// workers. Measured with a cycle counter around one vertex (tessellate-ipu): `add` f32 329 for 10
/// and 1860 for 1024 elements a tile, against 203 and 1733 of the formula; `scaled_add` f32 375,
/// 467, 665, 1043 for 64 .. 512, against 291, 381, 579, 957. The counter itself takes 45 of the
/// difference (its own documentation), the rest is launch.
constexpr double kTimerCycles = 45;
constexpr double kLaunchCycles = 82;            ///< vertices started as a MultiVertex
constexpr double kSupervisorLaunchCycles = 41;  ///< hand-written supervisor vertices (scaled add)

/// Cycles of a worker's loop for `unit` elements, loads and stores included.
struct Rate {
  double cycles;
  std::uint64_t unit;

  constexpr double of(std::uint64_t elements) const {
    return static_cast<double>((elements + unit - 1) / unit) * cycles;
  }
};

constexpr Rate rate(double cycles, std::uint64_t unit) { return {cycles, unit}; }

/// Rates of an operation, by the type of its operand.
struct Rates {
  Rate f32{4, 2}, f16{4, 4};
  Rate of_signed{7, 1}, of_unsigned{7, 1}, of_bool{7, 1};

  constexpr Rate of(ElementType operand) const {
    switch (operand) {
      case ElementType::kFloat:
        return f32;
      case ElementType::kHalf:
        return f16;
      case ElementType::kBool:
        return of_bool;
      case ElementType::kInt8:
      case ElementType::kInt16:
      case ElementType::kInt32:
        return of_signed;
      default:
        return of_unsigned;
    }
  }
};
inline constexpr Rates kRates[] = {
#define OP(Name, name, operands, traits, api, cycles) \
  [] {                                                \
    Rates r;                                          \
    cycles return r;                                  \
  }(),
#define REAL(f32_cycles, f32_unit, f16_cycles, f16_unit) \
  r.f32 = rate(f32_cycles, f32_unit);                    \
  r.f16 = rate(f16_cycles, f16_unit);
#define WHOLE(signed_cycles, unsigned_cycles, bool_cycles, unit) \
  r.of_signed = rate(signed_cycles, unit);                       \
  r.of_unsigned = rate(unsigned_cycles, unit);                   \
  r.of_bool = rate(bool_cycles, unit);
#include "engine/ops/ElementwiseOps.def"
};
constexpr Rate rateOf(Op op, ElementType operand) {
  return kRates[static_cast<std::size_t>(op)].of(operand);
}

/// castW without its constant: float to half takes two cycles for four, half to float one for two,
/// half and 8 bits nine for four; others go one by one.
constexpr Rate castRate(ElementType from, ElementType to) {
  if (from == ElementType::kFloat && to == ElementType::kHalf) return {2, 4};
  if (from == ElementType::kHalf && to == ElementType::kFloat) return {1, 2};
  if ((from == ElementType::kHalf && sizeOf(to) == 1) ||
      (to == ElementType::kHalf && sizeOf(from) == 1))
    return {9, 4};
  return {5, 1};
}

/// Elements in a 64-bit vector; integers go one by one.
constexpr std::uint64_t vectorOf(ElementType type) {
  return type == ElementType::kHalf ? 4 : type == ElementType::kFloat ? 2 : 1;
}
constexpr bool isReal(ElementType type) { return vectorOf(type) != 1; }

constexpr std::uint64_t shareOf(std::uint64_t n, unsigned workers) {
  return (n + workers - 1) / workers;
}

/// A MultiVertex of one operand (UnaryOp1D).
constexpr double unaryCycles(Op op, Rate rate, std::uint64_t n, unsigned workers) {
  return kLaunchCycles + 20 + workers * ((op == Op::kExp ? 33 : 17) + rate.of(shareOf(n, workers)));
}

/// A MultiVertex of two operands (BinaryOp1D).
constexpr double binaryCycles(ElementType operand, Rate rate, std::uint64_t n, unsigned workers) {
  const int constant = operand == ElementType::kFloat ? 29 : 26;
  return kLaunchCycles + 11 + workers * (constant + rate.of(shareOf(n, workers)));
}

/// With a scalar as the second operand, assembly loops have one load fewer per vector.
constexpr Rate scalarRate(Op op, ElementType operand, Rate rate) {
  const bool linear = op == Op::kAdd || op == Op::kSubtract || op == Op::kMultiply;
  return linear && isReal(operand) ? Rate{2, vectorOf(operand)} : rate;
}
/// A MultiVertex of a tensor and a scalar (BroadcastScalar1D).
constexpr double scalarCycles(Op op, ElementType operand, Rate rate, std::uint64_t n,
                              unsigned workers) {
  const double loop = scalarRate(op, operand, rate).of(shareOf(n, workers));
  return kLaunchCycles + 11 + workers * (20 + loop);
}

/// Cast1D.
constexpr double castCycles(Rate rate, std::uint64_t n, unsigned workers) {
  return kLaunchCycles + 12 + workers * (19 + rate.of(shareOf(n, workers)) + 18);
}

/// Fill, by one worker.
inline double fillCycles(ElementType type, std::uint64_t n) {
  const auto elements = static_cast<double>(n);
  if (sizeOf(type) == 1) return std::ceil(n < 64 ? 28 + elements / 4 : 39 + elements / 8);
  return std::ceil(sizeOf(type) == 2 ? 26 + elements / 4 : 23 + elements / 2);
}

/// ScaledAddSupervisor.
constexpr double scaledAddCycles(ElementType type, std::uint64_t n, unsigned workers) {
  if (!isReal(type)) {
    const std::uint64_t share = shareOf(n, workers);
    return kSupervisorLaunchCycles + 13 +
           workers * static_cast<double>(53 + 26 * (share / 3) + 6 + 26 * (share % 3) + 14);
  }
  const std::uint64_t vectors = n / vectorOf(type);
  const std::uint64_t share = vectors / workers;
  const bool uneven = vectors % workers != 0 || n % vectorOf(type) != 0;
  const double supervisor = 21 + 11 + (uneven ? 13 : 7) + 12 + 6;
  const double loop = 3 * static_cast<double>(share > 1 ? share - 1 : 0);
  return kSupervisorLaunchCycles + supervisor + workers * (18 + 6 + loop + (uneven ? 2 : 0));
}

}  // namespace ipujax::engine::expr
