#include <poplar/Vertex.hpp>

#include "Numbers.hpp"

// Cholesky factors and triangular and tridiagonal systems: one matrix, one worker.
namespace popx {

template <bool complex>
class Cholesky : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> a;  ///< [n, n], replaced by the factor
  unsigned n;
  bool lower;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    View<T> view = matrix<T>(a, n, n);
    if (!lower) view = view.transposed();  // U^T is the lower factor of A^T
    for (int j = 0; j < view.rows; ++j) {
      if (column(view, j)) continue;
      fill(view, NumberOf<complex>::make(NAN, NAN));
      return true;
    }
    return true;
  }

 private:
  /// Replaces column j; false if the matrix is not positive definite.
  template <class T>
  static bool column(const View<T>& a, int j) {
    float left = real(a(j, j));
    for (int k = 0; k < j; ++k) left -= squared(a(j, k));
    if (!(left > 0.0f) || !isFinite(left)) return false;
    const float root = sqrtf(left);
    a(j, j) = number<T>(root);
    for (int i = j + 1; i < a.rows; ++i) {
      T sum = a(i, j);
      for (int k = 0; k < j; ++k) sum -= a(i, k) * conj(a(j, k));
      a(i, j) = sum / root;
      a(j, i) = number<T>(0.0f);
    }
    return true;
  }
};
template class Cholesky<false>;
template class Cholesky<true>;

template <bool complex>
class TriangularSolve : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> a;  ///< [n, n]
  poplar::InOut<poplar::Vector<float>> b;  ///< [rows, columns], replaced by X
  unsigned n;
  unsigned rows;
  unsigned columns;
  bool left;
  bool lower;
  bool unit;
  bool transposed;
  bool conjugated;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    View<const T> t = matrix<const T>(a, n, n);
    View<T> x = matrix<T>(b, rows, columns);
    // X op(A) = B is op(A)^T X^T = B^T.
    if (!left) x = x.transposed();
    const bool turned = transposed == left;
    if (turned) t = t.transposed();
    const bool forward = lower != turned;
    const int size = x.rows;
    for (int step = 0; step < size; ++step) {
      const int i = forward ? step : size - 1 - step;
      const int begin = forward ? 0 : i + 1;
      const int end = forward ? i : size;
      for (int j = 0; j < x.columns; ++j) {
        T sum = x(i, j);
        for (int k = begin; k < end; ++k) sum -= element(t, i, k) * x(k, j);
        x(i, j) = unit ? sum : sum / element(t, i, i);
      }
    }
    return true;
  }

 private:
  template <class T>
  T element(const View<const T>& t, int i, int j) const {
    return conjugated ? conj(t(i, j)) : t(i, j);
  }
};
template class TriangularSolve<false>;
template class TriangularSolve<true>;

/// Elimination with partial pivoting; `upper` and `lower` become the first and second diagonals of
/// U above the main one.
template <bool complex>
class TridiagonalSolve : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> lower;     ///< [n], the first is not used
  poplar::InOut<poplar::Vector<float>> diagonal;  ///< [n]
  poplar::InOut<poplar::Vector<float>> upper;     ///< [n], the last is not used
  poplar::InOut<poplar::Vector<float>> b;         ///< [n, columns], replaced by X
  poplar::Output<int> status;
  unsigned n;
  unsigned columns;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    const int size = n;
    T* below = reinterpret_cast<T*>(&lower[0]);
    T* d = reinterpret_cast<T*>(&diagonal[0]);
    T* above = reinterpret_cast<T*>(&upper[0]);
    const View<T> x = matrix<T>(b, n, columns);
    *status = 0;
    for (int i = 0; i < size; ++i) {
      if (i + 1 < size) {
        if (taxicab(d[i]) < taxicab(below[i + 1])) {
          swapRows(i, below, d, above, x);
          continue;
        }
        if (taxicab(d[i]) != 0.0f) subtract(i, below, d, above, x);
      }
      if (taxicab(d[i]) == 0.0f) {
        *status = i + 1;
        return true;
      }
    }
    for (int j = 0; j < x.columns; ++j) {
      for (int i = size - 1; i >= 0; --i) {
        T sum = x(i, j);
        if (i + 1 < size) sum -= above[i] * x(i + 1, j);
        if (i + 2 < size) sum -= below[i + 1] * x(i + 2, j);
        x(i, j) = sum / d[i];
      }
    }
    return true;
  }

 private:
  template <class T>
  static void subtract(int i, T* below, T* d, T* above, const View<T>& x) {
    const T factor = below[i + 1] / d[i];
    d[i + 1] -= factor * above[i];
    for (int j = 0; j < x.columns; ++j) x(i + 1, j) -= factor * x(i, j);
    below[i + 1] = number<T>(0.0f);
  }

  /// below[i + 1] becomes U(i, i + 2).
  template <class T>
  static void swapRows(int i, T* below, T* d, T* above, const View<T>& x) {
    const bool last = i + 2 == x.rows;
    const T factor = d[i] / below[i + 1];
    d[i] = below[i + 1];
    const T next = d[i + 1];
    d[i + 1] = above[i] - factor * next;
    if (!last) {
      below[i + 1] = above[i + 1];
      above[i + 1] = -(factor * above[i + 1]);
    }
    above[i] = next;
    for (int j = 0; j < x.columns; ++j) {
      const T kept = x(i, j);
      x(i, j) = x(i + 1, j);
      x(i + 1, j) = kept - factor * x(i + 1, j);
    }
  }
};
template class TridiagonalSolve<false>;
template class TridiagonalSolve<true>;

/// The same, with rows weighted by their size and tiny pivots raised, so that X stays finite:
/// LAPACK's lagtf and lagts, which exist only for real numbers.
template <bool complex>
class PerturbedTridiagonalSolve : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> lower;
  poplar::InOut<poplar::Vector<float>> diagonal;
  poplar::InOut<poplar::Vector<float>> upper;
  poplar::InOut<poplar::Vector<float>> b;
  poplar::Output<int> status;
  unsigned n;
  unsigned columns;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    const int size = n;
    T* below = reinterpret_cast<T*>(&lower[0]);
    T* d = reinterpret_cast<T*>(&diagonal[0]);
    T* above = reinterpret_cast<T*>(&upper[0]);
    const View<T> x = matrix<T>(b, n, columns);
    *status = 0;
    float scale = taxicab(d[0]) + (size > 1 ? taxicab(above[0]) : 0.0f);
    for (int i = 0; i + 1 < size; ++i) eliminate(i, scale, below, d, above, x);
    float largest = 0.0f;
    for (int i = 0; i < size; ++i) {
      largest = fmaxf(largest, taxicab(d[i]));
      if (i + 1 < size) largest = fmaxf(largest, taxicab(above[i]));
      if (i + 2 < size) largest = fmaxf(largest, taxicab(below[i + 1]));
    }
    const float raise = kEpsilon * (largest == 0.0f ? 1.0f : largest);
    for (int j = 0; j < x.columns; ++j) {
      for (int i = size - 1; i >= 0; --i) {
        T sum = x(i, j);
        if (i + 1 < size) sum -= above[i] * x(i + 1, j);
        if (i + 2 < size) sum -= below[i + 1] * x(i + 2, j);
        x(i, j) = divide(sum, d[i], raise);
      }
    }
    return true;
  }

 private:
  static constexpr float kEpsilon = 0x1p-24f;
  static constexpr float kSmallest = 0x1p-126f;

  /// Eliminates column i from row i + 1; below[i + 1] becomes U(i, i + 2).
  template <class T>
  static void eliminate(int i, float& scale, T* below, T* d, T* above, const View<T>& x) {
    const bool last = i + 2 == x.rows;
    const T here = below[i + 1];
    const float size = taxicab(here);
    const float other = size + taxicab(d[i + 1]) + (last ? 0.0f : taxicab(above[i + 1]));
    const bool keep = size == 0.0f || size / other <= taxicab(d[i]) / scale;
    below[i + 1] = number<T>(0.0f);
    if (keep) {
      scale = other;
      if (size == 0.0f) return;
      const T factor = here / d[i];
      d[i + 1] -= factor * above[i];
      for (int j = 0; j < x.columns; ++j) x(i + 1, j) -= factor * x(i, j);
      return;
    }
    const T factor = d[i] / here;
    const T next = d[i + 1];
    d[i] = here;
    d[i + 1] = above[i] - factor * next;
    above[i] = next;
    if (!last) {
      below[i + 1] = above[i + 1];
      above[i + 1] = -(factor * above[i + 1]);
    }
    for (int j = 0; j < x.columns; ++j) {
      const T kept = x(i, j);
      x(i, j) = x(i + 1, j);
      x(i + 1, j) = kept - factor * x(i + 1, j);
    }
  }

  /// value / pivot, the pivot raised by 1, 2, 4 ... times `raise` until that does not overflow.
  template <class T>
  static T divide(T value, T pivot, float raise) {
    T step = taxicab(pivot) == 0.0f ? number<T>(copysignf(raise, real(pivot)))
                                    : pivot / magnitude(pivot) * raise;
    while (taxicab(pivot) < 1.0f &&
           (taxicab(pivot) == 0.0f || taxicab(value) * kSmallest > taxicab(pivot))) {
      pivot += step;
      step += step;
    }
    return value / pivot;
  }
};
template class PerturbedTridiagonalSolve<false>;
template class PerturbedTridiagonalSolve<true>;

}  // namespace popx
