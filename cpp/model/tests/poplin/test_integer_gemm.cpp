#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "Check.hpp"
#include "engine/ThreadPool.hpp"
#include "engine/blas/Gemm.hpp"

/// Integer products of any size, layout and mixture of types against wrapping sums of 64 bits.
namespace {

using namespace ipujax::engine;
using blas::Gemm;

constexpr ElementType kTypes[] = {
    ElementType::kBool,   ElementType::kInt8,   ElementType::kUInt8,
    ElementType::kInt16,  ElementType::kUInt16, ElementType::kInt32,
    ElementType::kUInt32, ElementType::kInt64,  ElementType::kUInt64,
};
constexpr int kSizes[] = {0, 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 64, 101, 170};

struct Random {
  std::mt19937_64 engine{6};
  int operator()(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(engine);
  }
  ElementType type() { return kTypes[(*this)(0, 8)]; }
  std::int64_t size() { return kSizes[(*this)(0, 14)]; }
};

/// A matrix between elements that must not change.
struct Operand {
  ElementType type;
  std::int64_t row, col, rows, cols;
  std::vector<std::byte> bytes;

  std::int64_t offset(std::int64_t i, std::int64_t j) const { return i * row + j * col; }
  std::uint64_t at(std::int64_t i, std::int64_t j) const {
    const auto size = sizeOf(type);
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + static_cast<std::size_t>(offset(i, j)) * size, size);
    const bool sign =
        type == ElementType::kInt8 || type == ElementType::kInt16 || type == ElementType::kInt32;
    if (sign && (value >> (8 * size - 1)) != 0) value |= ~std::uint64_t{0} << (8 * size);
    return value;
  }
  /// All elements, row by row.
  std::vector<std::uint64_t> values() const {
    std::vector<std::uint64_t> found;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) found.push_back(at(i, j));
    return found;
  }
  void set(std::int64_t i, std::int64_t j, std::uint64_t value) {
    const auto size = sizeOf(type);
    if (type == ElementType::kBool) value = value != 0;
    std::memcpy(bytes.data() + static_cast<std::size_t>(offset(i, j)) * size, &value, size);
  }
};

Operand operand(Random& r, ElementType type, std::int64_t rows, std::int64_t cols) {
  const int layout = r(0, 2);
  Operand o{type, 0, 0, rows, cols, {}};
  o.row = layout == 0 ? cols : layout == 1 ? 1 : 2 * cols + 1;
  o.col = layout == 0 ? 1 : layout == 1 ? rows : 2;
  const auto count = static_cast<std::size_t>(2 * rows * cols + rows + 1);
  const auto size = sizeOf(type);
  o.bytes.resize(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    // The ends of a type's range are as likely as all other values.
    constexpr std::uint64_t kTop = std::uint64_t{1} << 63;
    std::uint64_t value = r.engine();
    if (r(0, 1)) value = r(0, 1) ? kTop >> (64 - 8 * size) : (kTop >> (64 - 8 * size)) - 1;
    if (type == ElementType::kBool) value &= 1;
    std::memcpy(o.bytes.data() + i * size, &value, size);
  }
  return o;
}

std::string describe(const Gemm& g) {
  return std::to_string(g.m) + " x " + std::to_string(g.k) + " x " + std::to_string(g.n) + ", " +
         nameOf(g.a.type) + " x " + nameOf(g.b.type) + " -> " + nameOf(g.c.type) + ", strides " +
         std::to_string(g.a.row) + " " + std::to_string(g.a.col) + ", " + std::to_string(g.b.row) +
         " " + std::to_string(g.b.col) + ", " + std::to_string(g.c.row) + " " +
         std::to_string(g.c.col);
}

void verify(Random& r, std::int64_t m, std::int64_t k, std::int64_t n, ElementType a_type,
            ElementType b_type, ElementType c_type) {
  Operand a = operand(r, a_type, m, k), b = operand(r, b_type, k, n);
  Operand c = operand(r, c_type, m, n);
  Gemm g;
  g.m = m;
  g.n = n;
  g.k = k;
  g.accumulate = r(0, 3) == 0;
  Operand want = c, alone = c;
  const auto in_a = a.values(), in_b = b.values();
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      std::uint64_t sum = g.accumulate ? c.at(i, j) : 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum +=
            in_a[static_cast<std::size_t>(i * k + l)] * in_b[static_cast<std::size_t>(l * n + j)];
      // A bool asks whether the sum of 32 bits is zero.
      want.set(i, j, c_type == ElementType::kBool ? static_cast<std::uint32_t>(sum) : sum);
    }
  g.a = {a.bytes.data(), a.type, a.row, a.col};
  g.b = {b.bytes.data(), b.type, b.row, b.col};
  g.c = {c.bytes.data(), c.type, c.row, c.col};
  blas::gemm(&ThreadPool::shared(), g);
  if (c.bytes != want.bytes) check::fail(__FILE__, __LINE__, "shared out: ", describe(g));
  g.c.data = alone.bytes.data();
  blas::gemm(nullptr, g);
  if (alone.bytes != want.bytes) check::fail(__FILE__, __LINE__, "on one thread: ", describe(g));
}

}  // namespace

TEST(integer_gemm_any_size_layout_and_types) {
  Random r;
  for (int i = 0; i < 1500; ++i) {
    const std::int64_t k = r.size() * (r(0, 7) == 0 ? 11 : 1);
    verify(r, r.size(), k, r.size(), r.type(), r.type(), r.type());
  }
}

TEST(integer_gemm_every_type_with_itself_and_into_wider_ones) {
  Random r;
  for (const ElementType in : kTypes)
    for (const ElementType out : kTypes) {
      verify(r, 37, 1031, 53, in, in, out);
      verify(r, 1, 67, 129, in, in, out);
      verify(r, 129, 67, 1, in, in, out);
    }
}

TEST(integer_gemm_wraps_at_the_ends_of_the_range) {
  // Every product of the least shorts is 2^30: pairs of them, and longer sums, pass 2^31.
  for (const std::int64_t k : {1, 2, 3, 4, 8, 511, 4099}) {
    const std::vector<std::int16_t> least(static_cast<std::size_t>(k) * 20, -32768);
    std::vector<std::int32_t> c(400);
    Gemm g;
    g.m = g.n = 20;
    g.k = k;
    g.a = {least.data(), ElementType::kInt16, k, 1};
    g.b = {least.data(), ElementType::kInt16, 20, 1};
    g.c = {c.data(), ElementType::kInt32, 20, 1};
    blas::gemm(nullptr, g);
    const auto want = static_cast<std::int32_t>(static_cast<std::uint32_t>(k) << 30);
    for (const auto value : c) CHECK_EQ(value, want);
  }
}

TEST(integer_gemm_large_products_are_exact) {
  Random r;
  verify(r, 200, 601, 530, ElementType::kInt8, ElementType::kInt8, ElementType::kInt32);
  verify(r, 200, 601, 530, ElementType::kInt32, ElementType::kInt32, ElementType::kInt32);
  verify(r, 200, 301, 130, ElementType::kInt64, ElementType::kInt64, ElementType::kInt64);
}

TEST(gemm_refuses_floats_with_integers) {
  CHECK_THROWS(blas::arithmeticOf(ElementType::kFloat, ElementType::kInt32, ElementType::kFloat),
               "Cast the operands");
  CHECK_THROWS(blas::arithmeticOf(ElementType::kDouble, ElementType::kFloat, ElementType::kDouble),
               "Cast the operands");
}
