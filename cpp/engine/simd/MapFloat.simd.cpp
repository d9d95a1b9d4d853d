#include "engine/simd/MapLoops.hpp"

/// float: arithmetic, rounding, comparison, selection.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

#define IPUJAX_F1(Name, expression)                                  \
  struct Name {                                                      \
    IPUJAX_FN float operator()(float x) const { return expression; } \
  };
#define IPUJAX_P1(Name, expression)                                         \
  struct Name {                                                             \
    IPUJAX_FN std::uint8_t operator()(float x) const { return expression; } \
  };
#define IPUJAX_F2(Name, expression)                                           \
  struct Name {                                                               \
    IPUJAX_FN float operator()(float a, float b) const { return expression; } \
  };
#define IPUJAX_P2(Name, expression)                                                  \
  struct Name {                                                                      \
    IPUJAX_FN std::uint8_t operator()(float a, float b) const { return expression; } \
  };
#define IPUJAX_FN __attribute__((always_inline))

IPUJAX_F1(Abs, absOf(x))
IPUJAX_F1(Ceil, __builtin_ceilf(x))
IPUJAX_F1(Floor, __builtin_floorf(x))
IPUJAX_F1(Trunc, __builtin_truncf(x))
IPUJAX_F1(NearbyInt, __builtin_rintf(x))
// The largest float below one half: adding one half would carry 0.49999997 up.
IPUJAX_F1(Round, __builtin_truncf(x + withSign(0.49999997f, x)))
IPUJAX_F1(Inverse, 1.0f / x)
IPUJAX_F1(Negate, -x)
IPUJAX_F1(Relu, x < 0.0f ? 0.0f : x)
IPUJAX_F1(Rsqrt, 1.0f / __builtin_sqrtf(x))
IPUJAX_F1(Signum, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x))
IPUJAX_F1(Sqrt, __builtin_sqrtf(x))
IPUJAX_F1(Square, x* x)
IPUJAX_P1(IsFinite, (bitsOf(x) & 0x7f800000u) != 0x7f800000u)
IPUJAX_P1(IsInf, (bitsOf(x) & 0x7fffffffu) == 0x7f800000u)
IPUJAX_P1(IsNan, x != x)

IPUJAX_F2(Add, a + b)
IPUJAX_F2(Subtract, a - b)
IPUJAX_F2(Multiply, a* b)
IPUJAX_F2(Divide, a / b)
// Of equal operands only zeros differ: the larger is the one without a sign.
IPUJAX_F2(Maximum, (a != a || a > b) ? a : (a == b ? floatOf(bitsOf(a) & bitsOf(b)) : b))
IPUJAX_F2(Minimum, (a != a || a < b) ? a : (a == b ? floatOf(bitsOf(a) | bitsOf(b)) : b))
IPUJAX_F2(InvStdDevToVariance, 1.0f / (a * a) - b)
IPUJAX_F2(VarianceToInvStdDev, 1.0f / __builtin_sqrtf(a + b))
IPUJAX_P2(Equal, a == b)
IPUJAX_P2(NotEqual, a != b)
IPUJAX_P2(Less, a < b)
IPUJAX_P2(LessEqual, a <= b)
IPUJAX_P2(Greater, a > b)
IPUJAX_P2(GreaterEqual, a >= b)

struct Clamp {
  IPUJAX_FN float operator()(float x, float low, float high) const {
    const float at_least = Maximum{}(low, x);
    return Minimum{}(at_least, high);
  }
};
template <class T>
struct Select {
  IPUJAX_FN T operator()(T a, T b, std::uint8_t p) const { return p ? a : b; }
};
}  // namespace

MapFn findFloatUnary(expr::Op op) {
  using expr::Op;
  switch (op) {
    case Op::kAbs:
      return unary<Abs, float>();
    case Op::kCeil:
      return unary<Ceil, float>();
    case Op::kFloor:
      return unary<Floor, float>();
    case Op::kTrunc:
      return unary<Trunc, float>();
    case Op::kNearbyInt:
      return unary<NearbyInt, float>();
    case Op::kRound:
      return unary<Round, float>();
    case Op::kInverse:
      return unary<Inverse, float>();
    case Op::kNegate:
      return unary<Negate, float>();
    case Op::kRelu:
      return unary<Relu, float>();
    case Op::kRsqrt:
      return unary<Rsqrt, float>();
    case Op::kSignum:
      return unary<Signum, float>();
    case Op::kSqrt:
      return unary<Sqrt, float>();
    case Op::kSquare:
      return unary<Square, float>();
    case Op::kIsFinite:
      return unary<IsFinite, float, std::uint8_t>();
    case Op::kIsInf:
      return unary<IsInf, float, std::uint8_t>();
    case Op::kIsNan:
      return unary<IsNan, float, std::uint8_t>();
    default:
      return nullptr;
  }
}

MapFn findFloatBinary(expr::Op op, unsigned s) {
  using expr::Op;
  switch (op) {
    case Op::kAdd:
      return binary<Add, float>(s);
    case Op::kSubtract:
      return binary<Subtract, float>(s);
    case Op::kMultiply:
      return binary<Multiply, float>(s);
    case Op::kDivide:
      return binary<Divide, float>(s);
    case Op::kMaximum:
      return binary<Maximum, float>(s);
    case Op::kMinimum:
      return binary<Minimum, float>(s);
    case Op::kInvStdDevToVariance:
      return binary<InvStdDevToVariance, float>(s);
    case Op::kVarianceToInvStdDev:
      return binary<VarianceToInvStdDev, float>(s);
    case Op::kEqual:
      return binary<Equal, float, std::uint8_t>(s);
    case Op::kNotEqual:
      return binary<NotEqual, float, std::uint8_t>(s);
    case Op::kLessThan:
      return binary<Less, float, std::uint8_t>(s);
    case Op::kLessThanEqual:
      return binary<LessEqual, float, std::uint8_t>(s);
    case Op::kGreaterThan:
      return binary<Greater, float, std::uint8_t>(s);
    case Op::kGreaterThanEqual:
      return binary<GreaterEqual, float, std::uint8_t>(s);
    case Op::kClamp:
      return ternary<Clamp, float, float, float, float>(s);
    default:
      return nullptr;
  }
}

/// Selection moves bits, so one loop for each element size does.
MapFn findSelect(unsigned bytes, unsigned s) {
  using u8 = std::uint8_t;
  switch (bytes) {
    case 1:
      return ternary<Select<u8>, u8, u8, u8, u8>(s);
    case 2:
      return ternary<Select<std::uint16_t>, std::uint16_t, std::uint16_t, u8, std::uint16_t>(s);
    case 4:
      return ternary<Select<std::uint32_t>, std::uint32_t, std::uint32_t, u8, std::uint32_t>(s);
    case 8:
      return ternary<Select<std::uint64_t>, std::uint64_t, std::uint64_t, u8, std::uint64_t>(s);
    default:
      return nullptr;
  }
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
