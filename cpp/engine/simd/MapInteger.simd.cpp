#include <limits>
#include <type_traits>

#include "engine/simd/MapLoops.hpp"

/// Integers and bool (held as 0 or 1 in a byte). Where hardware leaves a result open it is XLA's:
/// x / 0 = -1, x % 0 = x, lowest / -1 = lowest, shifts by the width or more give 0 or the sign.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

#define IPUJAX_FN __attribute__((always_inline))
#define IPUJAX_I1(Name, expression)                                          \
  template <class T>                                                         \
  struct Name {                                                              \
    using U = std::make_unsigned_t<T>;                                       \
    IPUJAX_FN T operator()(T x) const { return static_cast<T>(expression); } \
  };
#define IPUJAX_I2(Name, expression)                                               \
  template <class T>                                                              \
  struct Name {                                                                   \
    using U = std::make_unsigned_t<T>;                                            \
    IPUJAX_FN T operator()(T a, T b) const { return static_cast<T>(expression); } \
  };
#define IPUJAX_IP(Name, expression)                     \
  template <class T>                                    \
  struct Name {                                         \
    IPUJAX_FN std::uint8_t operator()(T a, T b) const { \
      return static_cast<std::uint8_t>(expression);     \
    }                                                   \
  };

template <class T>
constexpr int kBits = static_cast<int>(sizeof(T)) * 8;
template <class T>
constexpr T kLowest = std::numeric_limits<T>::min();

template <class T>
IPUJAX_FN inline int leadingZeros(T x) {
  using U = std::make_unsigned_t<T>;
  const auto u = static_cast<std::uint64_t>(static_cast<U>(x));
  return u == 0 ? kBits<T> : __builtin_clzll(u) - (64 - kBits<T>);
}

IPUJAX_I1(Abs, x < 0 ? U(0) - U(x) : U(x))
IPUJAX_I1(BitwiseNot, ~x)
IPUJAX_I1(CountLeadingZeros, leadingZeros(x))
IPUJAX_I1(Negate, U(0) - U(x))
IPUJAX_I1(Popcount, __builtin_popcountll(static_cast<std::uint64_t>(U(x))))
IPUJAX_I1(Relu, x < 0 ? T(0) : x)
IPUJAX_I1(Signum, x > 0 ? 1 : (x < 0 ? -1 : 0))
IPUJAX_I1(Square, std::uint64_t(U(x)) * U(x))
IPUJAX_I2(Add, U(a) + U(b))
IPUJAX_I2(Subtract, U(a) - U(b))
// Short types multiply as unsigned: two uint16 promoted to int could overflow.
IPUJAX_I2(Multiply, (std::conditional_t<(sizeof(T) < 4), unsigned, U>(U(a)) * U(b)))
IPUJAX_I2(BitwiseAnd, a& b)
IPUJAX_I2(BitwiseOr, a | b)
IPUJAX_I2(BitwiseXor, a ^ b)
IPUJAX_I2(BitwiseXnor, ~(a ^ b))
IPUJAX_I2(Maximum, a > b ? a : b)
IPUJAX_I2(Minimum, a < b ? a : b)
IPUJAX_I2(ShiftLeft, U(b) >= U(kBits<T>) ? U(0) : U(U(a) << (U(b) & U(kBits<T> - 1))))
IPUJAX_I2(ShiftRight, U(b) >= U(kBits<T>) ? U(0) : U(U(a) >> (U(b) & U(kBits<T> - 1))))
IPUJAX_I2(ShiftRightSign,
          std::make_signed_t<T>(a) >> (U(b) >= U(kBits<T>) ? U(kBits<T> - 1) : U(b)))
IPUJAX_I2(RotateLeft, (U(a) << (U(b) % kBits<T>)) | (U(a) >> ((kBits<T> - U(b)) % kBits<T>)))
IPUJAX_IP(Equal, a == b)
IPUJAX_IP(NotEqual, a != b)
IPUJAX_IP(Less, a < b)
IPUJAX_IP(LessEqual, a <= b)
IPUJAX_IP(Greater, a > b)
IPUJAX_IP(GreaterEqual, a >= b)
IPUJAX_I2(LogicalAnd, (a != 0) & (b != 0))
IPUJAX_I2(LogicalOr, (a != 0) | (b != 0))
IPUJAX_I1(LogicalNot, x == 0)

template <class T>
struct Divide {
  IPUJAX_FN T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (a == kLowest<T> && b == -1) return a;
    }
    return static_cast<T>(a / b);
  }
};
template <class T>
struct Remainder {
  IPUJAX_FN T operator()(T a, T b) const {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
template <class T>
struct Power {
  IPUJAX_FN T operator()(T a, T b) const {
    std::uint64_t base = static_cast<std::uint64_t>(a);
    auto e = static_cast<std::uint64_t>(b);
    if constexpr (std::is_signed_v<T>) {
      if (b < 0) return a == 1 ? T(1) : (a == -1 ? ((b & 1) ? T(-1) : T(1)) : T(0));
    }
    std::uint64_t result = 1;
    for (; e != 0; e >>= 1) {
      if (e & 1) result *= base;
      base *= base;
    }
    return static_cast<T>(result);
  }
};
template <class T>
struct Clamp {
  IPUJAX_FN T operator()(T x, T low, T high) const {
    const T y = x < low ? low : x;
    return y > high ? high : y;
  }
};

template <class T>
MapFn integer(expr::Op op, unsigned s) {
  using expr::Op;
  using u8 = std::uint8_t;
  switch (op) {
    case Op::kAbs:
      return unary<Abs<T>, T>();
    case Op::kBitwiseNot:
      return unary<BitwiseNot<T>, T>();
    case Op::kCountLeadingZeros:
      return unary<CountLeadingZeros<T>, T>();
    case Op::kNegate:
      return unary<Negate<T>, T>();
    case Op::kPopcount:
      return unary<Popcount<T>, T>();
    case Op::kRelu:
      return unary<Relu<T>, T>();
    case Op::kSignum:
      return unary<Signum<T>, T>();
    case Op::kSquare:
      return unary<Square<T>, T>();
    case Op::kAdd:
      return binary<Add<T>, T>(s);
    case Op::kSubtract:
      return binary<Subtract<T>, T>(s);
    case Op::kMultiply:
      return binary<Multiply<T>, T>(s);
    case Op::kDivide:
      return binary<Divide<T>, T>(s);
    case Op::kRemainder:
      return binary<Remainder<T>, T>(s);
    case Op::kPower:
      return binary<Power<T>, T>(s);
    case Op::kBitwiseAnd:
      return binary<BitwiseAnd<T>, T>(s);
    case Op::kBitwiseOr:
      return binary<BitwiseOr<T>, T>(s);
    case Op::kBitwiseXor:
      return binary<BitwiseXor<T>, T>(s);
    case Op::kBitwiseXnor:
      return binary<BitwiseXnor<T>, T>(s);
    case Op::kMaximum:
      return binary<Maximum<T>, T>(s);
    case Op::kMinimum:
      return binary<Minimum<T>, T>(s);
    case Op::kShiftLeft:
      return binary<ShiftLeft<T>, T>(s);
    case Op::kShiftRight:
      return binary<ShiftRight<T>, T>(s);
    case Op::kShiftRightSignExtend:
      return binary<ShiftRightSign<T>, T>(s);
    case Op::kRotateLeft:
      return binary<RotateLeft<T>, T>(s);
    case Op::kEqual:
      return binary<Equal<T>, T, u8>(s);
    case Op::kNotEqual:
      return binary<NotEqual<T>, T, u8>(s);
    case Op::kLessThan:
      return binary<Less<T>, T, u8>(s);
    case Op::kLessThanEqual:
      return binary<LessEqual<T>, T, u8>(s);
    case Op::kGreaterThan:
      return binary<Greater<T>, T, u8>(s);
    case Op::kGreaterThanEqual:
      return binary<GreaterEqual<T>, T, u8>(s);
    case Op::kClamp:
      return ternary<Clamp<T>, T, T, T, T>(s);
    default:
      return nullptr;
  }
}

MapFn boolean(expr::Op op, unsigned s) {
  using expr::Op;
  using u8 = std::uint8_t;
  switch (op) {
    case Op::kLogicalNot:
      return unary<LogicalNot<u8>, u8>();
    case Op::kLogicalAnd:
      return binary<LogicalAnd<u8>, u8>(s);
    case Op::kLogicalOr:
      return binary<LogicalOr<u8>, u8>(s);
    case Op::kEqual:
      return binary<Equal<u8>, u8>(s);
    case Op::kBitwiseXnor:
      return binary<Equal<u8>, u8>(s);
    case Op::kBitwiseXor:
    case Op::kNotEqual:
      return binary<NotEqual<u8>, u8>(s);
    case Op::kLessThan:
      return binary<Less<u8>, u8>(s);
    case Op::kLessThanEqual:
      return binary<LessEqual<u8>, u8>(s);
    case Op::kGreaterThan:
      return binary<Greater<u8>, u8>(s);
    case Op::kGreaterThanEqual:
      return binary<GreaterEqual<u8>, u8>(s);
    default:
      return nullptr;
  }
}
}  // namespace

MapFn findInteger(expr::Op op, ElementType type, unsigned scalars) {
  switch (type) {
    case ElementType::kBool:
      return boolean(op, scalars);
    case ElementType::kInt8:
      return integer<std::int8_t>(op, scalars);
    case ElementType::kUInt8:
      return integer<std::uint8_t>(op, scalars);
    case ElementType::kInt16:
      return integer<std::int16_t>(op, scalars);
    case ElementType::kUInt16:
      return integer<std::uint16_t>(op, scalars);
    case ElementType::kInt32:
      return integer<std::int32_t>(op, scalars);
    case ElementType::kUInt32:
      return integer<std::uint32_t>(op, scalars);
    case ElementType::kInt64:
      return integer<std::int64_t>(op, scalars);
    case ElementType::kUInt64:
      return integer<std::uint64_t>(op, scalars);
    default:
      return nullptr;
  }
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
