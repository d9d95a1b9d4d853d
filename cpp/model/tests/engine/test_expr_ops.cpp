#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "Check.hpp"
#include "engine/Half.hpp"
#include "engine/expr/ExprProgram.hpp"

/// Every operation on every type, against a plain scalar definition written here.
namespace {
using namespace ipujax::engine;
using expr::ExprBuilder;
using expr::ExprEvaluator;
using expr::Op;

constexpr ElementType kIntegers[] = {
    ElementType::kInt8,  ElementType::kUInt8,  ElementType::kInt16, ElementType::kUInt16,
    ElementType::kInt32, ElementType::kUInt32, ElementType::kInt64, ElementType::kUInt64};

bool isSigned(ElementType t) {
  return t == ElementType::kInt8 || t == ElementType::kInt16 || t == ElementType::kInt32 ||
         t == ElementType::kInt64;
}

/// An array of elements of one type, read and written as bits.
struct Array {
  ElementType type;
  std::vector<std::byte> bytes;
  Array(ElementType t, std::size_t n) : type(t), bytes(n * sizeOf(t)) {}
  std::uint64_t bits(std::size_t k) const {
    std::uint64_t v = 0;
    std::memcpy(&v, bytes.data() + k * sizeOf(type), sizeOf(type));
    return v;
  }
  void set(std::size_t k, std::uint64_t v) {
    std::memcpy(bytes.data() + k * sizeOf(type), &v, sizeOf(type));
  }
  float real(std::size_t k) const {
    return type == ElementType::kHalf ? halfToFloat(static_cast<std::uint16_t>(bits(k)))
                                      : std::bit_cast<float>(static_cast<std::uint32_t>(bits(k)));
  }
  /// Sign-extended value of an integer.
  __int128 whole(std::size_t k) const {
    const std::uint64_t v = bits(k);
    if (!isSigned(type)) return v;
    const auto shift = 64 - 8 * sizeOf(type);
    return static_cast<std::int64_t>(v << shift) >> shift;
  }
};

std::uint64_t maskOf(ElementType t) {
  return sizeOf(t) == 8 ? ~0ull : (1ull << (8 * sizeOf(t))) - 1;
}

Array randomArray(ElementType type, std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  Array a(type, n);
  const std::uint64_t mask = maskOf(type);
  const std::uint64_t top = (mask >> 1) + 1;
  const std::uint64_t special[] = {0, 1, 2, mask, top, top - 1, 7, 31, 8, 16, 32, 64, mask - 1};
  for (std::size_t k = 0; k < n; ++k) {
    std::uint64_t v = random() & mask;
    if (random() % 3 == 0) v = special[random() % std::size(special)] & mask;
    if (random() % 3 == 0) v &= 15;
    if (type == ElementType::kBool) v &= 1;
    if (type == ElementType::kFloat && random() % 2)
      v = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(random() % 4001)) / 500 -
                                       4);
    if (type == ElementType::kHalf && random() % 2)
      v = floatToHalf(static_cast<float>(static_cast<int>(random() % 401)) / 50 - 4);
    a.set(k, v);
  }
  return a;
}

Array evaluate(const expr::ExprProgram& program, const std::vector<const Array*>& inputs,
               std::size_t n, const std::vector<bool>& uniform = {}) {
  Array out(program.outputTypes()[0], n);
  std::vector<const std::byte*> in;
  for (const auto* a : inputs) in.push_back(a->bytes.data());
  std::byte* o = out.bytes.data();
  ExprEvaluator(program, uniform).run(in, {&o, 1}, static_cast<std::int64_t>(n));
  return out;
}

expr::ExprProgram single(Op op, const std::vector<ElementType>& types) {
  ExprBuilder b(types);
  std::vector<std::int32_t> args;
  for (std::size_t i = 0; i < types.size(); ++i) args.push_back(b.input(i));
  b.output(b.apply(op, args));
  return b.build();
}

using Whole = __int128;

/// The integer definition: exact, then cut to the type's bits.
// Long: a case for each operation.
Whole integerOp(Op op, ElementType t, Whole a, Whole b) {
  const int width = static_cast<int>(8 * sizeOf(t));
  const std::uint64_t mask = maskOf(t);
  const auto ua = static_cast<std::uint64_t>(a) & mask;
  const auto ub = static_cast<std::uint64_t>(b) & mask;
  switch (op) {
    case Op::kAbs:
      return a < 0 ? -a : a;
    case Op::kNegate:
      return -a;
    case Op::kBitwiseNot:
      return ~a;
    case Op::kSignum:
      return a > 0 ? 1 : a < 0 ? -1 : 0;
    case Op::kSquare:
      return static_cast<Whole>(static_cast<unsigned __int128>(ua) * ua);
    case Op::kRelu:
      return a < 0 ? 0 : a;
    case Op::kPopcount: {
      int count = 0;
      for (int i = 0; i < width; ++i) count += (ua >> i) & 1;
      return count;
    }
    case Op::kCountLeadingZeros: {
      int count = 0;
      while (count < width && !((ua >> (width - 1 - count)) & 1)) ++count;
      return count;
    }
    case Op::kAdd:
      return a + b;
    case Op::kSubtract:
      return a - b;
    case Op::kMultiply:
      return static_cast<Whole>(static_cast<unsigned __int128>(ua) * ub);
    case Op::kDivide:
      return b == 0 ? -1 : a / b;
    case Op::kRemainder:
      return b == 0 ? a : a % b;
    case Op::kMaximum:
      return a > b ? a : b;
    case Op::kMinimum:
      return a < b ? a : b;
    case Op::kBitwiseAnd:
      return a & b;
    case Op::kBitwiseOr:
      return a | b;
    case Op::kBitwiseXor:
      return a ^ b;
    case Op::kBitwiseXnor:
      return ~(a ^ b);
    case Op::kShiftLeft:
      return ub >= static_cast<unsigned>(width) ? 0 : Whole(ua << ub);
    case Op::kShiftRight:
      return ub >= static_cast<unsigned>(width) ? 0 : Whole(ua >> ub);
    case Op::kShiftRightSignExtend: {
      const auto shift = 64 - width;
      const auto s = static_cast<std::int64_t>(ua << shift) >> shift;
      return s >> std::min<std::uint64_t>(ub, 63);
    }
    case Op::kPower: {
      if (isSigned(t) && b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
      std::uint64_t r = 1;
      for (int i = 63; i >= 0; --i) {
        r *= r;
        if ((ub >> i) & 1) r *= static_cast<std::uint64_t>(a);
      }
      return r;
    }
    case Op::kEqual:
      return a == b;
    case Op::kNotEqual:
      return a != b;
    case Op::kLessThan:
      return a < b;
    case Op::kLessThanEqual:
      return a <= b;
    case Op::kGreaterThan:
      return a > b;
    case Op::kGreaterThanEqual:
      return a >= b;
    default:
      check::fail(__FILE__, __LINE__, "no definition of ", nameOf(op));
  }
}

constexpr Op kIntegerUnary[] = {Op::kAbs,    Op::kNegate, Op::kBitwiseNot, Op::kSignum,
                                Op::kSquare, Op::kRelu,   Op::kPopcount,   Op::kCountLeadingZeros};
constexpr Op kIntegerBinary[] = {Op::kAdd,
                                 Op::kSubtract,
                                 Op::kMultiply,
                                 Op::kDivide,
                                 Op::kRemainder,
                                 Op::kMaximum,
                                 Op::kMinimum,
                                 Op::kBitwiseAnd,
                                 Op::kBitwiseOr,
                                 Op::kBitwiseXor,
                                 Op::kBitwiseXnor,
                                 Op::kShiftLeft,
                                 Op::kShiftRight,
                                 Op::kShiftRightSignExtend,
                                 Op::kPower,
                                 Op::kEqual,
                                 Op::kNotEqual,
                                 Op::kLessThan,
                                 Op::kLessThanEqual,
                                 Op::kGreaterThan,
                                 Op::kGreaterThanEqual};
constexpr std::size_t kN = 1337;

void expectBits(Op op, const Array& got, std::size_t k, std::uint64_t want, const std::string& of) {
  if (got.bits(k) != want)
    check::fail(__FILE__, __LINE__, nameOf(op), " ", nameOf(got.type), " of ", of, " gave bits ",
                got.bits(k), ", not ", want);
}
std::string show(Whole v) { return std::to_string(static_cast<double>(v)); }

float realOp(Op op, float a, float b) {
  switch (op) {
    case Op::kAbs:
      return std::fabs(a);
    case Op::kNegate:
      return -a;
    case Op::kSignum:
      return std::isnan(a) ? a : a > 0 ? 1.0f : a < 0 ? -1.0f : a;
    case Op::kSquare:
      return a * a;
    case Op::kRelu:
      return a < 0 ? 0 : a;
    case Op::kSqrt:
      return std::sqrt(a);
    case Op::kInverse:
      return 1 / a;
    case Op::kFloor:
      return std::floor(a);
    case Op::kCeil:
      return std::ceil(a);
    case Op::kTrunc:
      return std::trunc(a);
    case Op::kRound:
      return std::round(a);
    case Op::kNearbyInt:
      return std::nearbyint(a);
    case Op::kAdd:
      return a + b;
    case Op::kSubtract:
      return a - b;
    case Op::kMultiply:
      return a * b;
    case Op::kDivide:
      return a / b;
    case Op::kRemainder:
      return std::fmod(a, b);
    case Op::kMaximum:
      return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
    case Op::kMinimum:
      return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
    case Op::kInvStdDevToVariance:
      return 1 / (a * a) - b;
    case Op::kVarianceToInvStdDev:
      return 1 / std::sqrt(a + b);
    default:
      check::fail(__FILE__, __LINE__, "no definition of ", nameOf(op));
  }
}
constexpr Op kRealUnary[] = {Op::kAbs,  Op::kNegate, Op::kSignum,  Op::kSquare,
                             Op::kRelu, Op::kSqrt,   Op::kInverse, Op::kFloor,
                             Op::kCeil, Op::kTrunc,  Op::kRound,   Op::kNearbyInt};
constexpr Op kRealBinary[] = {Op::kAdd,
                              Op::kSubtract,
                              Op::kMultiply,
                              Op::kDivide,
                              Op::kRemainder,
                              Op::kMaximum,
                              Op::kMinimum,
                              Op::kInvStdDevToVariance,
                              Op::kVarianceToInvStdDev};

void expectReal(Op op, ElementType type, const Array& got, std::size_t k, float want, float a,
                float b) {
  if (type == ElementType::kHalf) want = halfToFloat(floatToHalf(want));
  const float v = got.real(k);
  if (!(v == want || (std::isnan(v) && std::isnan(want))))
    check::fail(__FILE__, __LINE__, nameOf(op), " ", nameOf(type), " of ", a, ", ", b, " gave ", v,
                ", not ", want);
}
}  // namespace

TEST(integer_operations_follow_their_definition) {
  for (auto type : kIntegers) {
    const Array a = randomArray(type, kN, 1);
    const Array b = randomArray(type, kN, 2);
    for (Op op : kIntegerUnary) {
      const Array c = evaluate(single(op, {type}), {&a}, kN);
      for (std::size_t k = 0; k < kN; ++k)
        expectBits(op, c, k,
                   static_cast<std::uint64_t>(integerOp(op, type, a.whole(k), 0)) & maskOf(c.type),
                   show(a.whole(k)));
    }
    for (Op op : kIntegerBinary) {
      for (int form = 0; form < 3; ++form) {  // both arrays; either one element
        const std::vector<bool> uniform{form == 1, form == 2};
        const Array c = evaluate(single(op, {type, type}), {&a, &b}, kN, uniform);
        for (std::size_t k = 0; k < kN; ++k) {
          const Whole x = a.whole(form == 1 ? 0 : k);
          const Whole y = b.whole(form == 2 ? 0 : k);
          expectBits(op, c, k,
                     static_cast<std::uint64_t>(integerOp(op, type, x, y)) & maskOf(c.type),
                     show(x) + ", " + show(y));
        }
      }
    }
  }
}

TEST(real_operations_follow_their_definition) {
  for (auto type : {ElementType::kFloat, ElementType::kHalf}) {
    const Array a = randomArray(type, kN, 3);
    const Array b = randomArray(type, kN, 4);
    for (Op op : kRealUnary) {
      const Array c = evaluate(single(op, {type}), {&a}, kN);
      for (std::size_t k = 0; k < kN; ++k)
        expectReal(op, type, c, k, realOp(op, a.real(k), 0), a.real(k), 0);
    }
    for (Op op : kRealBinary) {
      for (int form = 0; form < 3; ++form) {
        const std::vector<bool> uniform{form == 1, form == 2};
        const Array c = evaluate(single(op, {type, type}), {&a, &b}, kN, uniform);
        for (std::size_t k = 0; k < kN; ++k) {
          const float x = a.real(form == 1 ? 0 : k);
          const float y = b.real(form == 2 ? 0 : k);
          expectReal(op, type, c, k, realOp(op, x, y), x, y);
        }
      }
    }
    for (Op op : {Op::kEqual, Op::kNotEqual, Op::kLessThan, Op::kLessThanEqual, Op::kGreaterThan,
                  Op::kGreaterThanEqual}) {
      const Array c = evaluate(single(op, {type, type}), {&a, &b}, kN);
      CHECK(c.type == ElementType::kBool);
      for (std::size_t k = 0; k < kN; ++k) {
        const float x = a.real(k);
        const float y = b.real(k);
        const bool want = op == Op::kEqual           ? x == y
                          : op == Op::kNotEqual      ? x != y
                          : op == Op::kLessThan      ? x < y
                          : op == Op::kLessThanEqual ? x <= y
                          : op == Op::kGreaterThan   ? x > y
                                                     : x >= y;
        expectBits(op, c, k, want, std::to_string(x) + ", " + std::to_string(y));
      }
    }
    const Array finite = evaluate(single(Op::kIsFinite, {type}), {&a}, kN);
    const Array inf = evaluate(single(Op::kIsInf, {type}), {&a}, kN);
    const Array nan = evaluate(single(Op::kIsNan, {type}), {&a}, kN);
    for (std::size_t k = 0; k < kN; ++k) {
      CHECK_EQ(finite.bits(k), static_cast<std::uint64_t>(std::isfinite(a.real(k))));
      CHECK_EQ(inf.bits(k), static_cast<std::uint64_t>(std::isinf(a.real(k))));
      CHECK_EQ(nan.bits(k), static_cast<std::uint64_t>(std::isnan(a.real(k))));
    }
  }
}

TEST(bool_operations_are_logical) {
  const Array a = randomArray(ElementType::kBool, kN, 5);
  const Array b = randomArray(ElementType::kBool, kN, 6);
  const auto check_op = [&](Op op, auto want) {
    const Array c = evaluate(single(op, {ElementType::kBool, ElementType::kBool}), {&a, &b}, kN);
    for (std::size_t k = 0; k < kN; ++k)
      expectBits(op, c, k, want(a.bits(k) != 0, b.bits(k) != 0), "bools");
  };
  for (Op op : {Op::kLogicalOr, Op::kAdd, Op::kMaximum, Op::kBitwiseOr})
    check_op(op, [](bool x, bool y) { return x || y; });
  for (Op op : {Op::kLogicalAnd, Op::kMultiply, Op::kMinimum, Op::kBitwiseAnd})
    check_op(op, [](bool x, bool y) { return x && y; });
  for (Op op : {Op::kNotEqual, Op::kBitwiseXor})
    check_op(op, [](bool x, bool y) { return x != y; });
  for (Op op : {Op::kEqual, Op::kBitwiseXnor}) check_op(op, [](bool x, bool y) { return x == y; });
  check_op(Op::kLessThan, [](bool x, bool y) { return x < y; });
  const Array n = evaluate(single(Op::kLogicalNot, {ElementType::kBool}), {&a}, kN);
  for (std::size_t k = 0; k < kN; ++k) CHECK_EQ(n.bits(k), a.bits(k) ^ 1);
  CHECK_THROWS(single(Op::kSubtract, {ElementType::kBool, ElementType::kBool}), "needs");
}

TEST(casts_convert_between_all_types) {
  std::vector<ElementType> all(std::begin(kIntegers), std::end(kIntegers));
  all.insert(all.end(), {ElementType::kBool, ElementType::kHalf, ElementType::kFloat});
  const auto real = [](ElementType t) {
    return t == ElementType::kHalf || t == ElementType::kFloat;
  };
  for (auto from : all) {
    const Array a = randomArray(from, kN, 8);
    for (auto to : all) {
      ExprBuilder b({from});
      b.output(b.cast(b.input(0), to));
      const Array c = evaluate(b.build(), {&a}, kN);
      for (std::size_t k = 0; k < kN; ++k) {
        const std::string of = std::string(nameOf(from)) + " bits " + std::to_string(a.bits(k));
        if (real(to)) {
          const float want = real(from) ? a.real(k) : static_cast<float>(a.whole(k));
          expectReal(Op::kCast, to, c, k, want, want, 0);
        } else if (to == ElementType::kBool) {
          expectBits(Op::kCast, c, k, real(from) ? a.real(k) != 0 : a.bits(k) != 0, of);
        } else if (!real(from)) {
          expectBits(Op::kCast, c, k, static_cast<std::uint64_t>(a.whole(k)) & maskOf(to), of);
        } else {
          const Whole low = isSigned(to) ? -(Whole(1) << (8 * sizeOf(to) - 1)) : 0;
          const Whole high = low + Whole(maskOf(to));
          const auto x = static_cast<long double>(a.real(k));
          Whole want = 0;
          if (!std::isnan(x))
            want = x <= static_cast<long double>(low)    ? low
                   : x >= static_cast<long double>(high) ? high
                                                         : static_cast<Whole>(x);
          expectBits(Op::kCast, c, k, static_cast<std::uint64_t>(want) & maskOf(to), of);
        }
      }
    }
  }
}

TEST(select_and_clamp_take_one_element_anywhere) {
  for (auto type : {ElementType::kInt8, ElementType::kHalf, ElementType::kInt32,
                    ElementType::kFloat, ElementType::kInt64, ElementType::kBool}) {
    const Array a = randomArray(type, kN, 9);
    const Array b = randomArray(type, kN, 10);
    const Array p = randomArray(ElementType::kBool, kN, 11);
    for (unsigned form = 0; form < 8; ++form) {
      const std::vector<bool> u{(form & 1) != 0, (form & 2) != 0, (form & 4) != 0};
      const Array c =
          evaluate(single(Op::kSelect, {type, type, ElementType::kBool}), {&a, &b, &p}, kN, u);
      for (std::size_t k = 0; k < kN; ++k) {
        const auto want = p.bits(u[2] ? 0 : k) ? a.bits(u[0] ? 0 : k) : b.bits(u[1] ? 0 : k);
        if (type == ElementType::kHalf && (want & 0x7fff) > 0x7c00) continue;  // a NaN is a NaN
        expectBits(Op::kSelect, c, k, want, "values");
      }
    }
  }
  const float low = -1.5f;
  const float high = 2.0f;
  ExprBuilder b({ElementType::kFloat});
  b.output(b.apply(Op::kClamp, {b.input(0), b.constantFrom(ElementType::kFloat, low),
                                b.constantFrom(ElementType::kFloat, high)}));
  const Array x = randomArray(ElementType::kFloat, kN, 12);
  const Array c = evaluate(b.build(), {&x}, kN);
  for (std::size_t k = 0; k < kN; ++k) {
    const float v = x.real(k);
    expectReal(Op::kClamp, ElementType::kFloat, c, k,
               std::isnan(v) ? v : std::min(std::max(v, low), high), v, 0);
  }
}

TEST(zero_without_sign_is_the_larger) {
  Array a(ElementType::kFloat, 4);
  Array b(ElementType::kFloat, 4);
  const std::uint64_t minus = 0x80000000u;
  for (std::size_t k = 0; k < 4; ++k) {
    a.set(k, k & 1 ? minus : 0);
    b.set(k, k & 2 ? minus : 0);
  }
  const std::vector<ElementType> types(2, ElementType::kFloat);
  const Array high = evaluate(single(Op::kMaximum, types), {&a, &b}, 4);
  const Array low = evaluate(single(Op::kMinimum, types), {&a, &b}, 4);
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK_EQ(high.bits(k), k == 3 ? minus : 0);
    CHECK_EQ(low.bits(k), k == 0 ? 0 : minus);
  }
}
