#pragma once
#include <cstdint>

#include "engine/blas/Pack.hpp"

namespace ipujax::engine {
class ThreadPool;
}

/// Matrix products on the host. The order in which an element's products are added depends on K
/// alone, so results are the same for any number of threads.
namespace ipujax::engine::blas {

/// C[m, n] = (accumulate ? C : 0) + scale * A[m, k] * B[k, n] in the arithmetic of the types; only
/// float and half are scaled.
struct Gemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  ConstMatrix a;
  ConstMatrix b;
  Matrix c;
  float scale = 1.0f;
  bool accumulate = false;
  /// Partial sums over this many k are rounded to half; 0: float partials.
  std::int64_t half_block = 0;
  /// B as packed by packRight, for repeated products of floats with the same B; null: not packed.
  /// `b` must be set in either case.
  const float* packed = nullptr;
};

std::int64_t packedSize(std::int64_t k, std::int64_t n);  ///< floats
void packRight(const ConstMatrix& b, std::int64_t k, std::int64_t n, float* packed);

/// The same product with C transposed, where that is how `gemm` computes it.
Gemm oriented(const Gemm& problem);
/// Whether `gemm` computes each element of an oriented product by itself, along K.
bool isByDot(const Gemm& oriented);

/// Runs on the calling thread alone if the pool is null.
void gemm(ThreadPool* pool, const Gemm& problem);

}  // namespace ipujax::engine::blas
