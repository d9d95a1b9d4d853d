#pragma once
#include <cstdint>

namespace ipujax::engine::blas {

/// C[m, n] = A[m, k] * B[k, n] + (accumulate ? C : 0) by OpenBLAS, on the calling thread alone.
/// `lda` and `ldb` are the strides of the rows of A and B, or of their columns where transposed.
struct Sgemm {
  bool a_transposed = false;
  bool b_transposed = false;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  float alpha = 1.0f;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* b = nullptr;
  std::int64_t ldb = 0;
  bool accumulate = false;
  float* c = nullptr;
  std::int64_t ldc = 0;
};
void sgemm(const Sgemm& call);

/// Loads the library, with the kernels for this CPU, before other threads run.
void loadOpenBlas();

/// A function of the library, which includes LAPACK; throws if none has this name.
void* openBlasSymbol(const char* name);

}  // namespace ipujax::engine::blas
