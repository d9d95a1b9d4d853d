#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "engine/blas/Lapack.hpp"

namespace ipujax::engine::blas {

/// Solves tridiagonal systems of complex numbers T as LAPACK's lagtf and lagts solve real ones:
/// scales rows by their size for pivoting, and raises tiny pivots so that X stays finite.
template <class T>
struct PerturbedTridiagonal {
  using R = Real<T>;
  int n, columns;
  T* lower;     ///< [n - 1]; U(i, i + 2) replaces lower[i]
  T* diagonal;  ///< [n]
  T* upper;     ///< [n - 1]
  T* b;         ///< [columns, n], replaced by X

  void solve() {
    R scale = sizeOf(diagonal[0]) + (n > 1 ? sizeOf(upper[0]) : R{0});
    for (int i = 0; i + 1 < n; ++i) eliminate(i, scale);
    R largest = 0;
    for (int i = 0; i < n; ++i) {
      largest = std::max(largest, sizeOf(diagonal[i]));
      if (i + 1 < n) largest = std::max(largest, sizeOf(upper[i]));
      if (i + 2 < n) largest = std::max(largest, sizeOf(lower[i]));
    }
    const R raise = std::numeric_limits<R>::epsilon() / 2 * (largest == R{0} ? R{1} : largest);
    for (int j = 0; j < columns; ++j) {
      T* x = b + std::int64_t{j} * n;
      for (int i = n - 1; i >= 0; --i) {
        T sum = x[i];
        if (i + 1 < n) sum -= upper[i] * x[i + 1];
        if (i + 2 < n) sum -= lower[i] * x[i + 2];
        x[i] = quotient(sum, diagonal[i], raise);
      }
    }
  }

  /// Eliminates column i from row i + 1, after a swap if that row is relatively larger in it.
  void eliminate(int i, R& scale) {
    const bool last = i + 2 == n;
    const T below = lower[i], next = diagonal[i + 1];
    const R other = sizeOf(below) + sizeOf(next) + (last ? R{0} : sizeOf(upper[i + 1]));
    const bool keep = below == T{0} || sizeOf(below) / other <= sizeOf(diagonal[i]) / scale;
    lower[i] = 0;
    if (keep) {
      scale = other;
      if (below == T{0}) return;
      const T factor = below / diagonal[i];
      diagonal[i + 1] -= factor * upper[i];
      for (int j = 0; j < columns; ++j) row(j)[i + 1] -= factor * row(j)[i];
      return;
    }
    const T factor = diagonal[i] / below;
    diagonal[i] = below;
    diagonal[i + 1] = upper[i] - factor * next;
    upper[i] = next;
    if (!last) {
      lower[i] = upper[i + 1];
      upper[i + 1] *= -factor;
    }
    for (int j = 0; j < columns; ++j) {
      T* x = row(j);
      const T kept = x[i];
      x[i] = x[i + 1];
      x[i + 1] = kept - factor * x[i];
    }
  }

  T* row(int column) { return b + std::int64_t{column} * n; }

  static R sizeOf(T z) { return std::abs(z.real()) + std::abs(z.imag()); }

  /// value / pivot; raises the pivot by 1, 2, 4 ... times `raise` until this does not overflow.
  static T quotient(T value, T pivot, R raise) {
    const R smallest = std::numeric_limits<R>::min();
    T step =
        pivot == T{0} ? T{std::copysign(raise, pivot.real())} : pivot / std::abs(pivot) * raise;
    while (sizeOf(pivot) < R{1} && (pivot == T{0} || sizeOf(value) * smallest > sizeOf(pivot))) {
      pivot += step;
      step *= R{2};
    }
    return value / pivot;
  }
};

}  // namespace ipujax::engine::blas
