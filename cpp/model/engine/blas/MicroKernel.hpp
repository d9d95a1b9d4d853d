#pragma once
#include <cstdint>

#include "engine/blas/Arithmetic.hpp"
#include "engine/simd/Isa.hpp"

/// The innermost loops of matrix products and convolutions, one set for each arithmetic and
/// instruction set. Sizes and strides count words.
namespace ipujax::engine::blas {

/// One call of the micro kernel: C[mr, cols] (+)= sum over segments s and k < kc of
/// A(i, s, k) * B(s, k, j), with A(i, s, k) = a[i * a_row + s's offset + k * a_k].
/// Element (k, j) of a panel of B lies at panel[k * kPanel + j].
template <class W>
struct MicroCall {
  const W* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t a_k = 1;
  const std::int64_t* segments = nullptr;  ///< offsets in A; null: one segment at 0
  std::int64_t num_segments = 1;
  std::int64_t kc = 0;       ///< length of a segment
  const W* b = nullptr;      ///< first panel; k runs through all segments without a gap
  std::int64_t b_k = 0;      ///< words from one k to the next
  std::int64_t b_panel = 0;  ///< words from one panel to the next
  W* c = nullptr;            ///< row-major sums
  std::int64_t c_row = 0;
  std::int64_t cols = 0;  ///< columns that exist, at most panels * kPanel
  bool accumulate = false;
};

inline constexpr int kMaxRows = 14;
inline constexpr int kMaxPanels = 4;

template <class M>
struct MicroTable {
  using W = Word<M>;
  using MicroFn = void (*)(const MicroCall<W>&);
  MicroFn fn[kMaxPanels + 1][kMaxRows + 1];  ///< [panels][rows], null if registers do not suffice
  int max_rows[kMaxPanels + 1];
  int panels;  ///< for many rows; few rows may use more, up to kMaxPanels
  /// Packs one panel from columns that are contiguous along k: dst[k * kPanel + j] =
  /// src[j * ld + k].
  void (*packTransposed)(const W* src, std::int64_t ld, std::int64_t kc, std::int64_t cols, W* dst);
  /// The sum of x[i] * y[i], in an order that depends on n alone.
  W (*dot)(const W* x, const W* y, std::int64_t n);
};

IPUJAX_DECLARE_SIMD(template <class M> const MicroTable<M>& microTable())

/// The table for this CPU.
template <class M>
const MicroTable<M>& micro() {
  static const MicroTable<M>& table = IPUJAX_PICK(microTable<M>)();
  return table;
}

}  // namespace ipujax::engine::blas
