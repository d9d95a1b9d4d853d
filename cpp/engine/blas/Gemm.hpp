#pragma once
#include <cstdint>

#include "engine/blas/Pack.hpp"

namespace ipujax::engine {
class ThreadPool;
}

/// Matrix products on the host. The order in which one element's products are added depends on K
/// alone: results are the same for any number of threads.
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
};

/// Null pool: on this thread alone.
void gemm(ThreadPool* pool, const Gemm& problem);

}  // namespace ipujax::engine::blas
