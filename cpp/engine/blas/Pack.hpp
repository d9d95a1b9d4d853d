#pragma once
#include <cstdint>

#include "engine/ElementType.hpp"

namespace ipujax::engine::blas {

/// A matrix of floats or halves anywhere in memory; strides in elements.
struct ConstMatrix {
  const void* data = nullptr;
  ElementType type = ElementType::kFloat;
  std::int64_t row = 0;
  std::int64_t col = 1;

  const float* floats(std::int64_t i, std::int64_t j) const {
    return static_cast<const float*>(data) + i * row + j * col;
  }
  const std::uint16_t* halves(std::int64_t i, std::int64_t j) const {
    return static_cast<const std::uint16_t*>(data) + i * row + j * col;
  }
  ConstMatrix transposed() const { return {data, type, col, row}; }
  bool isFloat() const { return type == ElementType::kFloat; }
};
struct Matrix {
  void* data = nullptr;
  ElementType type = ElementType::kFloat;
  std::int64_t row = 0;
  std::int64_t col = 1;
  bool isFloat() const { return type == ElementType::kFloat; }
};

/// `count` elements, `stride` apart, as floats side by side.
void loadRow(const void* data, ElementType type, std::int64_t offset, std::int64_t stride,
             std::int64_t count, float* out);
/// The other way: rounds to the type's nearest value.
void storeRow(const float* in, void* data, ElementType type, std::int64_t offset,
              std::int64_t stride, std::int64_t count);
/// Rounds floats to the values a half can hold.
void roundToHalf(float* values, std::int64_t count);

/// Columns [col, col + cols) and rows [k, k + kc) of B as one panel, columns past `cols` zero.
void packPanel(const ConstMatrix& b, std::int64_t k, std::int64_t kc, std::int64_t col,
               std::int64_t cols, float* panel);

/// Where a packed or untouched left operand lies for the micro kernel.
struct LeftBlock {
  const float* data = nullptr;
  std::int64_t row = 0;  ///< stride between rows inside one row block
  std::int64_t k = 1;
  std::int64_t block = 0;  ///< stride between row blocks of `rows_per_block`
};
std::int64_t leftScratch(std::int64_t rows, std::int64_t kc);
/// Rows [m, m + rows) and columns [k, k + kc) of A, in row blocks of `per_block`; `buffer` has
/// leftScratch floats.
LeftBlock packLeft(const ConstMatrix& a, std::int64_t m, std::int64_t rows, std::int64_t k,
                   std::int64_t kc, std::int64_t per_block, float* buffer);

}  // namespace ipujax::engine::blas
