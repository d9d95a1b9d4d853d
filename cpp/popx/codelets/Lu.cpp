#include <poplar/Vertex.hpp>

#include "Numbers.hpp"

// LU factors with partial pivoting: one matrix, one worker.
namespace popx {

template <bool complex>
class Lu : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> a;      ///< [m, n], replaced by L and U
  poplar::Output<poplar::Vector<int>> pivots;  ///< [min(m, n)], counted from 1
  poplar::Output<int> status;                  ///< 0, or the first zero pivot, counted from 1
  unsigned m;
  unsigned n;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    const View<T> view = matrix<T>(a, m, n);
    const int small = m < n ? m : n;
    *status = 0;
    for (int k = 0; k < small; ++k) {
      const int best = pivot(view, k);
      pivots[k] = best + 1;
      if (taxicab(view(best, k)) == 0.0f) {
        if (*status == 0) *status = k + 1;
        continue;
      }
      if (best != k) swapColumns(view.transposed(), best, k);
      for (int i = k + 1; i < view.rows; ++i) {
        const T factor = view(i, k) / view(k, k);
        view(i, k) = factor;
        for (int j = k + 1; j < view.columns; ++j) view(i, j) -= factor * view(k, j);
      }
    }
    return true;
  }

 private:
  template <class T>
  static int pivot(const View<T>& a, int k) {
    int best = k;
    for (int i = k + 1; i < a.rows; ++i)
      if (taxicab(a(i, k)) > taxicab(a(best, k))) best = i;
    return best;
  }
};
template class Lu<false>;
template class Lu<true>;

/// The order of rows after swaps, one after another.
class PivotPermutation : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<int>> pivots;  ///< counted from 0
  poplar::Output<poplar::Vector<int>> order;

  bool compute() {
    for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
    for (unsigned i = 0; i < pivots.size(); ++i) {
      const int kept = order[i];
      order[i] = order[pivots[i]];
      order[pivots[i]] = kept;
    }
    return true;
  }
};

}  // namespace popx
