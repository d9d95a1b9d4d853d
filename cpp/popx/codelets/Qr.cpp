#include <poplar/Vertex.hpp>

#include "Reflectors.hpp"

// QR factors by Householder's reflectors, and products with Q: one matrix, one worker.
namespace popx {

template <bool complex>
class Qr : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> a;     ///< [m, n], replaced by R and the reflectors
  poplar::Output<poplar::Vector<float>> tau;  ///< [min(m, n)]
  unsigned m;
  unsigned n;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    const View<T> view = matrix<T>(a, m, n);
    T* taus = reinterpret_cast<T*>(&tau[0]);
    const int small = m < n ? m : n;
    for (int k = 0; k < small; ++k) taus[k] = eliminate(view, k);
    return true;
  }
};
template class Qr<false>;
template class Qr<true>;

/// With column pivoting: the longest remaining column is next.
template <bool complex>
class QrWithPivots : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> a;     ///< [m, n], replaced by R and the reflectors
  poplar::InOut<poplar::Vector<int>> order;   ///< [n], not 0: first; replaced by columns from 1
  poplar::Output<poplar::Vector<float>> tau;  ///< [min(m, n)]
  unsigned m;
  unsigned n;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    const View<T> view = matrix<T>(a, m, n);
    T* taus = reinterpret_cast<T*>(&tau[0]);
    const int small = m < n ? m : n;
    const int fixed = moveFixed(view);
    for (int k = 0; k < small; ++k) {
      if (k >= fixed) exchange(view, k, longest(view, k));
      taus[k] = eliminate(view, k);
    }
    return true;
  }

 private:
  template <class T>
  void exchange(const View<T>& a, int p, int q) {
    if (p == q) return;
    swapColumns(a, p, q);
    const int kept = order[p];
    order[p] = order[q];
    order[q] = kept;
  }

  /// Moves the columns that are not free to the front and returns their number.
  template <class T>
  int moveFixed(const View<T>& a) {
    int fixed = 0;
    for (int j = 0; j < a.columns; ++j) {
      const bool free = order[j] == 0;
      order[j] = j + 1;
      if (!free) exchange(a, j, fixed++);
    }
    return fixed;
  }

  template <class T>
  static int longest(const View<T>& a, int k) {
    int best = k;
    float most = -1.0f;
    for (int j = k; j < a.columns; ++j) {
      const float size = length(a.from(k, j));
      if (size > most) {
        most = size;
        best = j;
      }
    }
    return best;
  }
};
template class QrWithPivots<false>;
template class QrWithPivots<true>;

template <bool complex>
class HouseholderProduct : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> a;    ///< [m, n] reflectors, replaced by columns of Q
  poplar::Input<poplar::Vector<float>> tau;  ///< [count]
  unsigned m;
  unsigned n;
  unsigned count;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    expandReflectors(matrix<T>(a, m, n), reinterpret_cast<const T*>(&tau[0]), int(count));
    return true;
  }
};
template class HouseholderProduct<false>;
template class HouseholderProduct<true>;

template <bool complex>
class HouseholderMultiply : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> a;    ///< [m, n] reflectors
  poplar::Input<poplar::Vector<float>> tau;  ///< [count]
  poplar::InOut<poplar::Vector<float>> c;    ///< [rows, columns], replaced by the product
  unsigned m;
  unsigned n;
  unsigned count;
  unsigned rows;
  unsigned columns;
  bool left;
  bool adjoint;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    // The reflectors are only read.
    const View<T> factors = {const_cast<T*>(reinterpret_cast<const T*>(&a[0])), int(m), int(n),
                             int(n), 1};
    const T* taus = reinterpret_cast<const T*>(&tau[0]);
    const View<T> target = matrix<T>(c, rows, columns);
    for (int step = 0; step < int(count); ++step) {
      const int k = left == adjoint ? step : int(count) - 1 - step;
      const T factor = adjoint ? conj(taus[k]) : taus[k];
      if (left) {
        applyLeft(factors.from(k + 1, k), factor, target.from(k, 0));
      } else {
        applyRight(factors.from(k + 1, k), factor, target.from(0, k));
      }
    }
    return true;
  }
};
template class HouseholderMultiply<false>;
template class HouseholderMultiply<true>;

}  // namespace popx
