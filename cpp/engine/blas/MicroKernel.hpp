#pragma once
#include <cstdint>

#include "engine/simd/Isa.hpp"

/// The innermost loops of matrix products and convolutions, one set per instruction set.
namespace ipujax::engine::blas {

/// Columns of one packed panel of the right operand: element (k, j) lies at panel[k * 16 + j].
inline constexpr std::int64_t kPanel = 16;

/// One call of the micro kernel: C[mr, cols] (+)= sum over segments s and k < kc of
/// A(i, s, k) * B(s, k, j), with A(i, s, k) = a[i * a_row + s's offset + k * a_k].
struct MicroCall {
  const float* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t a_k = 1;
  const std::int64_t* segments = nullptr;  ///< offsets in A; null: one segment at 0
  std::int64_t num_segments = 1;
  std::int64_t kc = 0;        ///< length of a segment
  const float* b = nullptr;   ///< first panel; k runs through all segments without a gap
  std::int64_t b_k = kPanel;  ///< elements from one k to the next
  std::int64_t b_panel = 0;   ///< elements from one panel to the next
  float* c = nullptr;         ///< row-major
  std::int64_t c_row = 0;
  std::int64_t cols = 0;  ///< columns that exist, at most panels * 16
  bool accumulate = false;
};

using MicroFn = void (*)(const MicroCall&);
inline constexpr int kMaxRows = 14;
inline constexpr int kMaxPanels = 4;

struct MicroTable {
  MicroFn fn[kMaxPanels + 1][kMaxRows + 1];  ///< [panels][rows], null where registers run out
  int max_rows[kMaxPanels + 1];
  int max_panels;
  /// Rows of `count` halves to floats and back (round to nearest, ties to even).
  void (*halfToFloat)(const std::uint16_t* in, float* out, std::int64_t count);
  void (*floatToHalf)(const float* in, std::uint16_t* out, std::int64_t count);
  /// One packed panel from columns that are contiguous along k: dst[k * 16 + j] = src[j * ld + k].
  void (*packTransposed)(const float* src, std::int64_t ld, std::int64_t kc, std::int64_t cols,
                         float* dst);
  /// sum of x[i] * y[i], in an order that depends on n alone.
  float (*dot)(const float* x, const float* y, std::int64_t n);
};

IPUJAX_DECLARE_SIMD(const MicroTable& microTable())

/// The table for this CPU.
const MicroTable& micro();

}  // namespace ipujax::engine::blas
