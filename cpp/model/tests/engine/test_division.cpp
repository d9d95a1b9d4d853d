#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "Check.hpp"
#include "engine/expr/ExprPlan.hpp"

/// Quotients and remainders by vectors and by one number, against the C++ operators.
namespace {
using namespace ipujax::engine;
using expr::ExprBuilder;
using expr::ExprEvaluator;
using expr::Op;

template <class T>
std::vector<T> run(Op op, ElementType type, const std::vector<T>& a, const std::vector<T>& b) {
  ExprBuilder builder({type, type});
  builder.output(builder.apply(op, {builder.input(0), builder.input(1)}));
  const std::vector<bool> uniform{a.size() < b.size(), b.size() < a.size()};
  std::vector<T> out(std::max(a.size(), b.size()));
  const auto bytes = [](const auto& v) { return reinterpret_cast<const std::byte*>(v.data()); };
  const std::vector<const std::byte*> in{bytes(a), bytes(b)};
  const std::vector<std::byte*> to{reinterpret_cast<std::byte*>(out.data())};
  ExprEvaluator(builder.build(), uniform).run(in, to, static_cast<std::int64_t>(out.size()));
  return out;
}

template <class T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - std::uint64_t(a));
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}

template <class T>
void checkIntegers(ElementType type, const std::vector<T>& a, const std::vector<T>& b) {
  const auto quotients = run(Op::kDivide, type, a, b);
  const auto remainders = run(Op::kRemainder, type, a, b);
  for (std::size_t k = 0; k < quotients.size(); ++k) {
    const T x = a.size() == 1 ? a[0] : a[k], y = b.size() == 1 ? b[0] : b[k];
    if (quotients[k] != quotient(x, y) || remainders[k] != remainder(x, y))
      check::fail(__FILE__, __LINE__, +x, " / ", +y, " gave ", +quotients[k], " and ",
                  +remainders[k]);
  }
}

/// Bounds, powers of two, the neighbours of both, and random numbers of every length.
template <class T>
std::vector<T> numbers(std::mt19937_64& r) {
  std::vector<T> found;
  for (int bit = 0; bit < static_cast<int>(sizeof(T)) * 8; ++bit) {
    for (int near = -1; near <= 1; ++near) {
      const auto x = static_cast<T>((std::uint64_t{1} << bit) + static_cast<std::uint64_t>(near));
      found.push_back(x);
      found.push_back(static_cast<T>(0 - std::uint64_t(x)));
    }
    found.push_back(static_cast<T>(r() >> (63 - bit)));
  }
  return found;
}

template <class T>
void checkIntegers(ElementType type) {
  std::mt19937_64 r(3);
  const auto all = numbers<T>(r);
  std::vector<T> a, b;
  for (const T x : all) {
    for (const T y : all) {
      a.push_back(x), b.push_back(y);
      // Dividends with a whole quotient, and those next to them.
      for (int near = -1; near <= 1; ++near) {
        a.push_back(
            static_cast<T>(std::uint64_t(x) * std::uint64_t(y) + static_cast<std::uint64_t>(near)));
        b.push_back(y);
      }
    }
  }
  checkIntegers(type, a, b);
  for (const T y : all) checkIntegers(type, all, std::vector<T>{y});
  for (const T x : all) checkIntegers(type, std::vector<T>{x}, all);
}

/// By a constant, in an expression of several operations, which become products with its inverse.
template <class T>
void checkConstants(ElementType type) {
  std::mt19937_64 r(5);
  const auto all = numbers<T>(r);
  for (const T divisor : all) {
    std::vector<T> a = all;
    for (int k = 0; k < 100; ++k) a.push_back(static_cast<T>(r()));
    for (int near = -2; near <= 2; ++near)
      for (const std::uint64_t multiple : {1, 2, 3, 100, 65535, 65537})
        a.push_back(static_cast<T>(multiple * std::uint64_t(divisor) + std::uint64_t(near)));
    ExprBuilder builder({type});
    const auto d =
        builder.constant(type, static_cast<std::int64_t>(static_cast<std::uint32_t>(divisor)));
    const auto q = builder.apply(Op::kDivide, {builder.input(0), d});
    const auto rest = builder.apply(Op::kRemainder, {builder.input(0), d});
    builder.output(builder.apply(Op::kBitwiseNot, {q}));
    builder.output(builder.apply(Op::kBitwiseNot, {rest}));
    std::vector<T> quotients(a.size()), remainders(a.size());
    const std::vector<const std::byte*> in{reinterpret_cast<const std::byte*>(a.data())};
    const std::vector<std::byte*> to{reinterpret_cast<std::byte*>(quotients.data()),
                                     reinterpret_cast<std::byte*>(remainders.data())};
    ExprEvaluator(builder.build()).run(in, to, static_cast<std::int64_t>(a.size()));
    for (std::size_t k = 0; k < a.size(); ++k)
      if (~quotients[k] != quotient(a[k], divisor) || ~remainders[k] != remainder(a[k], divisor))
        check::fail(__FILE__, __LINE__, a[k], " / ", divisor, " gave ", ~quotients[k], " and ",
                    ~remainders[k]);
  }
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}
}  // namespace

TEST(integers) {
  checkIntegers<std::int8_t>(ElementType::kInt8);
  checkIntegers<std::uint8_t>(ElementType::kUInt8);
  checkIntegers<std::int16_t>(ElementType::kInt16);
  checkIntegers<std::uint16_t>(ElementType::kUInt16);
  checkIntegers<std::int32_t>(ElementType::kInt32);
  checkIntegers<std::uint32_t>(ElementType::kUInt32);
  checkIntegers<std::int64_t>(ElementType::kInt64);
  checkIntegers<std::uint64_t>(ElementType::kUInt64);
}

TEST(integers_by_constants) {
  checkConstants<std::int32_t>(ElementType::kInt32);
  checkConstants<std::uint32_t>(ElementType::kUInt32);
}

TEST(all_quotients_of_bytes) {
  std::vector<std::int8_t> a, b;
  for (int x = -128; x < 128; ++x)
    for (int y = -128; y < 128; ++y)
      a.push_back(static_cast<std::int8_t>(x)), b.push_back(static_cast<std::int8_t>(y));
  checkIntegers(ElementType::kInt8, a, b);
}

TEST(ones_and_leading_zeros) {
  std::mt19937_64 r(4);
  const auto check_type = [&]<class T>(T, ElementType type) {
    const auto all = numbers<T>(r);
    const std::vector<T> zero{0};
    for (const Op op : {Op::kPopcount, Op::kCountLeadingZeros}) {
      ExprBuilder builder({type});
      builder.output(builder.apply(op, {builder.input(0)}));
      std::vector<T> out(all.size());
      const std::vector<const std::byte*> in{reinterpret_cast<const std::byte*>(all.data())};
      const std::vector<std::byte*> to{reinterpret_cast<std::byte*>(out.data())};
      ExprEvaluator(builder.build()).run(in, to, static_cast<std::int64_t>(all.size()));
      for (std::size_t k = 0; k < all.size(); ++k) {
        const auto u = static_cast<std::make_unsigned_t<T>>(all[k]);
        CHECK(static_cast<int>(out[k]) ==
              (op == Op::kPopcount ? std::popcount(u) : std::countl_zero(u)));
      }
    }
  };
  check_type(std::int8_t{}, ElementType::kInt8);
  check_type(std::uint16_t{}, ElementType::kUInt16);
  check_type(std::int32_t{}, ElementType::kInt32);
  check_type(std::uint64_t{}, ElementType::kUInt64);
}

TEST(float_remainders_and_powers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937 r(5);
  std::vector<float> a{0.0f, -0.0f, kInfinity, -kInfinity, std::nanf(""), 1e-45f, 3.4e38f, 1.0f};
  for (int k = 0; k < 400; ++k) a.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(r())));
  for (int k = 0; k < 400; ++k)
    a.push_back(static_cast<float>(static_cast<int>(r() % 4001)) - 2e3f);
  std::vector<float> x, y;
  for (const float v : a)
    for (const float w : a) x.push_back(v), y.push_back(w);
  for (int k = 0; k < 20000; ++k) {  // near whole quotients of any size
    const float w = std::ldexp(1.0f + static_cast<float>(r() % 8388608) * 0x1p-23f, r() % 20);
    const float v = w * static_cast<float>(1 + r() % (1u << (1 + r() % 28)));
    for (const float near : {std::nextafter(v, 0.0f), v, std::nextafter(v, kInfinity)})
      x.push_back(near), y.push_back(w);
  }
  const auto rest = run(Op::kRemainder, ElementType::kFloat, x, y);
  for (std::size_t k = 0; k < x.size(); ++k)
    if (!same(rest[k], std::fmod(x[k], y[k])))
      check::fail(__FILE__, __LINE__, x[k], " % ", y[k], " gave ", rest[k]);
  for (const float one : {2.0f, -0.75f, 0.0f, kInfinity}) {
    const auto by = run(Op::kRemainder, ElementType::kFloat, a, {one});
    const auto of = run(Op::kRemainder, ElementType::kFloat, {one}, a);
    for (std::size_t k = 0; k < a.size(); ++k)
      CHECK(same(by[k], std::fmod(a[k], one)) && same(of[k], std::fmod(one, a[k])));
  }
  for (const float one : {2.0f, -3.0f, 0.5f, 0.0f}) {
    const auto by = run(Op::kPower, ElementType::kFloat, a, {one});
    const auto of = run(Op::kPower, ElementType::kFloat, {one}, a);
    for (std::size_t k = 0; k < a.size(); ++k) {
      CHECK(same(by[k], static_cast<float>(std::pow(double{a[k]}, double{one}))));
      CHECK(same(of[k], static_cast<float>(std::pow(double{one}, double{a[k]}))));
    }
  }
}
