#pragma once
#include <cstdint>

#include "engine/blas/Gemm.hpp"
#include "engine/simd/Isa.hpp"

/// Many products of small float matrices at a time, one in each lane. Each element has the bits
/// that `gemm` gives it.
namespace ipujax::engine::blas {

constexpr std::int64_t kMostSmallElements = 64;  ///< of each matrix

/// Products g with A at a.data + g * a_step, and so on; steps in elements.
struct SmallProducts {
  Gemm first;
  std::int64_t a_step = 0;
  std::int64_t b_step = 0;
  std::int64_t c_step = 0;
  bool fused = true;  ///< whether a product and its addition round once, as in all but dot products
};

/// Whether lanes are faster than `gemm` for `count` products like this one.
bool suitsLanes(const Gemm& product, std::int64_t count);

IPUJAX_DECLARE_SIMD(void inLanes(const SmallProducts& products, std::int64_t begin,
                                 std::int64_t end))

/// Multiplies products [begin, end).
inline void multiply(const SmallProducts& products, std::int64_t begin, std::int64_t end) {
  static const auto picked = IPUJAX_PICK(inLanes);
  picked(products, begin, end);
}

}  // namespace ipujax::engine::blas
