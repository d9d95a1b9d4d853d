#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "Check.hpp"
#include "engine/ThreadPool.hpp"
#include "engine/blas/Gemm.hpp"
#include "engine/blas/SmallProducts.hpp"

/// Matrix products of any size, layout and type against loops in double, with one thread and many,
/// with a right operand that was packed beforehand, and many small ones at a time.
namespace {

using namespace ipujax::engine;
using blas::Gemm;

struct Random {
  std::mt19937 engine{5};
  int operator()(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(engine);
  }
};

struct Operand {
  ElementType type;
  std::int64_t row, col;
  std::vector<std::byte> bytes;

  void* data() { return bytes.data(); }
  double at(std::int64_t i, std::int64_t j) const {
    float x = 0;
    blas::loadRow(bytes.data(), type, i * row + j * col, 1, 1, &x);
    return static_cast<double>(x);
  }
};

Operand randomOperand(Random& r, std::int64_t rows, std::int64_t cols, bool half) {
  Operand o;
  o.type = half ? ElementType::kHalf : ElementType::kFloat;
  const int layout = r(0, 2);
  o.row = layout == 0 ? cols : layout == 1 ? 1 : 2 * cols;
  o.col = layout == 0 ? 1 : layout == 1 ? rows : 2;
  const std::int64_t count = 2 * rows * cols + 1;
  o.bytes.resize(static_cast<std::size_t>(count) * sizeOf(o.type));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<float>(r(-1000, 1000)) / 1000;
    blas::storeRow(&x, o.bytes.data(), o.type, i, 1, 1);
  }
  return o;
}

constexpr int kSizes[] = {0, 1, 2, 3, 7, 14, 15, 16, 17, 33, 64, 100, 170};

void verify(Random& r) {
  const auto size = [&] { return kSizes[r(1, 12)]; };
  Gemm g;
  g.m = size();
  g.n = size();
  g.k = r(0, 15) == 0 ? 0 : size() * r(1, 3);
  Operand a = randomOperand(r, g.m, g.k, r(0, 2) == 0);
  Operand b = randomOperand(r, g.k, g.n, r(0, 2) == 0);
  Operand c = randomOperand(r, g.m, g.n, r(0, 3) == 0);
  const Operand before = c;
  Operand alone = c;
  g.a = {a.data(), a.type, a.row, a.col};
  g.b = {b.data(), b.type, b.row, b.col};
  g.c = {c.data(), c.type, c.row, c.col};
  g.accumulate = r(0, 2) == 0;
  g.scale = r(0, 2) == 0 ? 0.5f : 1.0f;
  g.half_block = r(0, 7) == 0 ? 16 : 0;
  blas::gemm(&ThreadPool::shared(), g);
  g.c.data = alone.data();
  blas::gemm(nullptr, g);
  CHECK(c.bytes == alone.bytes);
  Operand by_packed = before;
  std::vector<float> packed(static_cast<std::size_t>(blas::packedSize(g.k, g.n)));
  blas::packRight(g.b, g.k, g.n, packed.data());
  g.c.data = by_packed.data();
  g.packed = packed.data();
  blas::gemm(nullptr, g);
  CHECK(c.bytes == by_packed.bytes);
  const double tolerance = g.half_block ? 0.05 : c.type == ElementType::kHalf ? 2e-3 : 1e-4;
  for (std::int64_t i = 0; i < g.m; ++i)
    for (std::int64_t j = 0; j < g.n; ++j) {
      double want = 0;
      for (std::int64_t k = 0; k < g.k; ++k) want += a.at(i, k) * b.at(k, j);
      want = want * static_cast<double>(g.scale) + (g.accumulate ? before.at(i, j) : 0);
      CHECK_NEAR(c.at(i, j), want, tolerance * (1 + std::abs(want)));
    }
}

/// A sequence of small matrices: the elements and their type and strides, and the step between.
Gemm smallGemm(Random& r, std::vector<Operand>& operands, std::int64_t count) {
  Gemm g;
  g.m = r(1, 8);
  g.n = r(1, 3) == 1 ? 1 : r(1, 8);
  g.k = r(1, 8);
  operands = {randomOperand(r, count * g.m, g.k, false), randomOperand(r, count * g.k, g.n, false),
              randomOperand(r, count * g.m, g.n, false)};
  g.a = {operands[0].data(), ElementType::kFloat, operands[0].row, operands[0].col};
  g.b = {operands[1].data(), ElementType::kFloat, operands[1].row, operands[1].col};
  g.c = {operands[2].data(), ElementType::kFloat, operands[2].row, operands[2].col};
  return g;
}

bool verifySmall(Random& r) {
  const std::int64_t count = r(8, 40);
  std::vector<Operand> operands;
  Gemm g = smallGemm(r, operands, count);
  if (!blas::suitsLanes(g, count)) return false;
  const bool shared = r(0, 4) == 0;  // one B for all
  const blas::SmallProducts products{g, g.m * g.a.row, shared ? 0 : g.k * g.b.row, g.m * g.c.row,
                                     !blas::isByDot(blas::oriented(g))};
  Operand want = operands[2];
  blas::multiply(products, 0, 5);
  blas::multiply(products, 5, count);
  for (std::int64_t i = 0; i < count; ++i) {
    Gemm one = g;
    one.a.data = g.a.words<float>(0, 0) + i * products.a_step;
    one.b.data = g.b.words<float>(0, 0) + i * products.b_step;
    one.c.data = reinterpret_cast<float*>(want.bytes.data()) + i * products.c_step;
    blas::gemm(nullptr, one);
  }
  CHECK(operands[2].bytes == want.bytes);
  return true;
}

}  // namespace

TEST(many_small_products_have_the_bits_of_gemm) {
  Random r;
  int verified = 0;
  for (int i = 0; i < 1000; ++i) verified += verifySmall(r) ? 1 : 0;
  CHECK(verified > 300);
}

TEST(gemm_any_size_layout_and_type) {
  Random r;
  for (int i = 0; i < 300; ++i) verify(r);
}

TEST(gemm_large_products_are_the_same_with_any_number_of_threads) {
  Random r;
  Gemm g;
  g.m = 450;
  g.n = 530;
  g.k = 600;
  for (int layout = 0; layout < 4; ++layout) {
    Operand a = randomOperand(r, g.m, g.k, false);
    Operand b = randomOperand(r, g.k, g.n, layout == 3);
    Operand c = randomOperand(r, g.m, g.n, false);
    Operand alone = c;
    g.a = {a.data(), a.type, a.row, a.col};
    g.b = {b.data(), b.type, b.row, b.col};
    g.c = {c.data(), c.type, c.row, c.col};
    blas::gemm(&ThreadPool::shared(), g);
    g.c.data = alone.data();
    blas::gemm(nullptr, g);
    CHECK(c.bytes == alone.bytes);
    for (const std::int64_t i : {0, 1, 255, 449}) {
      double want = 0;
      for (std::int64_t k = 0; k < g.k; ++k) want += a.at(i, k) * b.at(k, 529);
      CHECK_NEAR(c.at(i, 529), want, 1e-3);
    }
  }
}
