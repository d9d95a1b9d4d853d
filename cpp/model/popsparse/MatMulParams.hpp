#pragma once
#include <cstddef>
#include <ostream>
#include <tuple>

#include "popsparse/SparsityParams.hpp"

namespace popsparse {
namespace dynamic {

/// [groups, m, k] (sparse) x [groups, k, n] = [groups, m, n].
class MatMulParams {
 public:
  /// Throws poplibs_error for an nzRatio outside [0, 1], or if blocks do not divide the matrix.
  static MatMulParams createWithNzRatio(const SparsityParams& sparsityParams, double nzRatio,
                                        std::size_t groups, std::size_t m, std::size_t k,
                                        std::size_t n);
  static MatMulParams createWithNumNonZeroValues(const SparsityParams& sparsityParams,
                                                 std::size_t numNonZeroElems, std::size_t groups,
                                                 std::size_t m, std::size_t k, std::size_t n);
  const SparsityParams& getSparsityParams() const { return sparsityParams_; }
  std::size_t getNumGroups() const { return groups_; }
  std::size_t getM() const { return m_; }
  std::size_t getK() const { return k_; }
  std::size_t getN() const { return n_; }
  double getNzRatio() const { return nzRatio_; }
  std::size_t getNumNonZeroValues() const;

  friend bool operator<(const MatMulParams& a, const MatMulParams& b) { return a.key() < b.key(); }
  friend bool operator==(const MatMulParams& a, const MatMulParams& b) {
    return a.key() == b.key();
  }
  friend bool operator!=(const MatMulParams& a, const MatMulParams& b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& os, const MatMulParams& p);

 private:
  MatMulParams() = default;
  std::tuple<SparsityParams, double, std::size_t, std::size_t, std::size_t, std::size_t> key()
      const {
    return {sparsityParams_, nzRatio_, groups_, m_, k_, n_};
  }
  SparsityParams sparsityParams_;
  double nzRatio_ = 0;
  std::size_t groups_ = 0;
  std::size_t m_ = 0;
  std::size_t k_ = 0;
  std::size_t n_ = 0;
};

}  // namespace dynamic

namespace static_ {

/// A product with one sparse side; k is the dimension that is summed over.
class MatMulParams {
 public:
  MatMulParams() = default;
  /// [groups, m, k] (sparse) x [groups, k, n] = [groups, m, n].
  static MatMulParams createForSparseDense(std::size_t groups, std::size_t m, std::size_t k,
                                           std::size_t n);
  /// [groups, n, k] x [groups, k, m] (sparse) = [groups, n, m].
  static MatMulParams createForDenseSparse(std::size_t groups, std::size_t n, std::size_t k,
                                           std::size_t m);
  std::size_t getNumGroups() const { return groups_; }
  std::size_t getM() const { return m_; }
  std::size_t getK() const { return k_; }
  std::size_t getN() const { return n_; }
  bool isTransposed() const { return transposed_; }  ///< made for dense x sparse

  friend bool operator<(const MatMulParams& a, const MatMulParams& b) { return a.key() < b.key(); }
  friend bool operator==(const MatMulParams& a, const MatMulParams& b) {
    return a.key() == b.key();
  }
  friend bool operator!=(const MatMulParams& a, const MatMulParams& b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& os, const MatMulParams& p);

 private:
  std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, bool> key() const {
    return {groups_, m_, k_, n_, transposed_};
  }
  std::size_t groups_ = 0;
  std::size_t m_ = 0;
  std::size_t k_ = 0;
  std::size_t n_ = 0;
  bool transposed_ = false;
};

}  // namespace static_
}  // namespace popsparse
