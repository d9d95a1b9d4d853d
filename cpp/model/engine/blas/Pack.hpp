#pragma once
#include <cstdint>

#include "engine/blas/Arithmetic.hpp"

namespace ipujax::engine::blas {

/// A strided matrix in memory; strides in elements.
struct ConstMatrix {
  const void* data = nullptr;
  ElementType type = ElementType::kFloat;
  std::int64_t row = 0;
  std::int64_t col = 1;

  const void* at(std::int64_t i, std::int64_t j) const {
    return static_cast<const char*>(data) +
           (i * row + j * col) * static_cast<std::int64_t>(sizeOf(type));
  }
  /// Only if elements in memory are words.
  template <class W>
  const W* words(std::int64_t i, std::int64_t j) const {
    return static_cast<const W*>(data) + i * row + j * col;
  }
  ConstMatrix transposed() const { return {data, type, col, row}; }
};
struct Matrix {
  void* data = nullptr;
  ElementType type = ElementType::kFloat;
  std::int64_t row = 0;
  std::int64_t col = 1;
};

/// Loads `count` elements, `stride` apart, as contiguous floats.
void loadRow(const void* data, ElementType type, std::int64_t offset, std::int64_t stride,
             std::int64_t count, float* out);
/// The reverse; rounds to the type's nearest value.
void storeRow(const float* in, void* data, ElementType type, std::int64_t offset,
              std::int64_t stride, std::int64_t count);

/// Loads `count` elements, neighbours along k and `stride` apart, as wordsOf<M>(count) words.
template <class M>
void loadRow(const void* data, ElementType type, std::int64_t offset, std::int64_t stride,
             std::int64_t count, Word<M>* out);
/// Loads `count` words, each with the `num_k` <= kPerWord neighbours along k that begin at an
/// element of the row; neighbours are `k_stride` apart.
template <class M>
void loadAcross(const void* data, ElementType type, std::int64_t offset, std::int64_t k_stride,
                std::int64_t num_k, std::int64_t stride, std::int64_t count, Word<M>* out);
/// Writes sums, rounded or cut to the type.
template <class M>
void storeRow(const Word<M>* in, void* data, ElementType type, std::int64_t offset,
              std::int64_t stride, std::int64_t count);

/// Packs columns [col, col + cols) and rows [k, k + num_k) of B as one panel of wordsOf(num_k)
/// rows; columns past `cols` are zero.
template <class M>
void packPanel(const ConstMatrix& b, std::int64_t k, std::int64_t num_k, std::int64_t col,
               std::int64_t cols, Word<M>* panel);

/// Location of a left operand, packed or in place, for the micro kernel; strides in words.
template <class M>
struct LeftBlock {
  const Word<M>* data = nullptr;
  std::int64_t row = 0;  ///< stride between rows inside one row block
  std::int64_t k = 1;
  std::int64_t block = 0;  ///< stride between row blocks of `per_block` rows
};
std::int64_t leftWords(std::int64_t rows, std::int64_t kc);
/// Packs rows [m, m + rows) and columns [k, k + num_k) of A in row blocks of `per_block`; `buffer`
/// has leftWords(rows, wordsOf(num_k)) words.
template <class M>
LeftBlock<M> packLeft(const ConstMatrix& a, std::int64_t m, std::int64_t rows, std::int64_t k,
                      std::int64_t num_k, std::int64_t per_block, Word<M>* buffer);

}  // namespace ipujax::engine::blas
