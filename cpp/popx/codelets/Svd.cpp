#include <poplar/Vertex.hpp>

#include "Rotation.hpp"

// Singular values and vectors: one matrix, one worker.
namespace popx {

/// One-sided Jacobi: rotations make the columns of A (of A^H if it is wide) orthogonal; their
/// lengths are the singular values, and the rotations together are the other vectors.
template <bool complex>
class Svd : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> a;        ///< [m, n]
  poplar::InOut<poplar::Vector<float>> tall;     ///< [max, max if full, else min]: vectors
  poplar::InOut<poplar::Vector<float>> small;    ///< [min, min]: vectors of the other side
  poplar::Output<poplar::Vector<float>> u;       ///< [m, m or min], not written without vectors
  poplar::Output<poplar::Vector<float>> vh;      ///< [n or min, n]
  poplar::Output<poplar::Vector<float>> values;  ///< [min], descending
  poplar::Output<int> status;
  unsigned m;
  unsigned n;
  bool vectors;
  bool full;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    const bool wide = m < n;
    const int high = wide ? n : m;
    const int narrow = wide ? m : n;
    const View<T> all = matrix<T>(tall, high, full ? high : narrow);
    const View<T> w = {all.data, high, narrow, all.down, 1};
    const View<T> v = matrix<T>(small, narrow, narrow);
    const View<const T> in = matrix<const T>(a, m, n);
    for (int i = 0; i < high; ++i)
      for (int j = 0; j < narrow; ++j) w(i, j) = wide ? conj(in(j, i)) : in(i, j);
    *status = 1;
    setIdentity(v);
    if (!allFinite(w)) {
      for (int j = 0; j < narrow; ++j) values[j] = NAN;
      return true;
    }
    const float scale = normalise(w);
    *status = 0;
    for (int sweep = 0; sweep < 40 && rotateAll(w, v); ++sweep) {
    }
    sort(w, v);
    if (vectors) {
      const int found = makeUnit(w);
      for (int j = found; j < all.columns; ++j) {
        if (j < narrow && values[j] > 0.0f) continue;
        addOrthogonal(all, j);
      }
      store(wide ? v : all, wide ? all : v);
    }
    for (int j = 0; j < narrow; ++j) values[j] *= scale;
    return true;
  }

 private:
  /// Columns shorter than this part of the largest element count as zero.
  static constexpr float kLeast = 1e-18f;

  /// Divides by the largest element, so that squares do not overflow, and returns it.
  template <class T>
  static float normalise(const View<T>& w) {
    float largest = 0.0f;
    for (int i = 0; i < w.rows; ++i)
      for (int j = 0; j < w.columns; ++j) largest = fmaxf(largest, taxicab(w(i, j)));
    if (largest == 0.0f) return 1.0f;
    for (int i = 0; i < w.rows; ++i)
      for (int j = 0; j < w.columns; ++j) w(i, j) = w(i, j) / largest;
    return largest;
  }

  template <class T>
  static bool rotateAll(const View<T>& w, const View<T>& v) {
    const float tolerance = 1e-7f * sqrtf(float(w.rows));
    bool any = false;
    for (int p = 0; p < w.columns; ++p) {
      for (int q = p + 1; q < w.columns; ++q) {
        float first = 0.0f, second = 0.0f;
        T cross = number<T>(0.0f);
        for (int i = 0; i < w.rows; ++i) {
          first += squared(w(i, p));
          second += squared(w(i, q));
          cross += conj(w(i, p)) * w(i, q);
        }
        if (first < kLeast * kLeast || second < kLeast * kLeast) continue;
        if (magnitude(cross) <= tolerance * sqrtf(first) * sqrtf(second)) continue;
        any = true;
        const Rotation<T> rotation(first, second, cross);
        rotation.columns(w, p, q);
        rotation.columns(v, p, q);
      }
    }
    return any;
  }

  /// Writes lengths to `values` in descending order, and sorts the columns with them.
  template <class T>
  void sort(const View<T>& w, const View<T>& v) {
    for (int j = 0; j < w.columns; ++j) {
      float sum = 0.0f;
      for (int i = 0; i < w.rows; ++i) sum += squared(w(i, j));
      values[j] = sqrtf(sum);
    }
    for (int j = 0; j < w.columns; ++j) {
      int most = j;
      for (int k = j + 1; k < w.columns; ++k)
        if (values[k] > values[most]) most = k;
      if (most == j) continue;
      const float kept = values[j];
      values[j] = values[most];
      values[most] = kept;
      swapColumns(w, j, most);
      swapColumns(v, j, most);
    }
  }

  /// Scales the columns to length 1, and returns the number of nonzero ones.
  template <class T>
  int makeUnit(const View<T>& w) {
    int j = 0;
    for (; j < w.columns && values[j] > kLeast; ++j)
      for (int i = 0; i < w.rows; ++i) w(i, j) = w(i, j) / values[j];
    for (int k = j; k < w.columns; ++k) values[k] = 0.0f;
    return j;
  }

  /// Column j: the unit vector farthest from the columns before it, made orthogonal to them.
  template <class T>
  static void addOrthogonal(const View<T>& all, int j) {
    int best = 0;
    float least = 2.0f;
    for (int i = 0; i < all.rows; ++i) {
      float sum = 0.0f;
      for (int k = 0; k < j; ++k) sum += squared(all(i, k));
      if (sum < least) {
        least = sum;
        best = i;
      }
    }
    for (int i = 0; i < all.rows; ++i) all(i, j) = number<T>(i == best ? 1.0f : 0.0f);
    for (int pass = 0; pass < 2; ++pass) {
      for (int k = 0; k < j; ++k) {
        T inner = number<T>(0.0f);
        for (int i = 0; i < all.rows; ++i) inner += conj(all(i, k)) * all(i, j);
        for (int i = 0; i < all.rows; ++i) all(i, j) -= all(i, k) * inner;
      }
    }
    float sum = 0.0f;
    for (int i = 0; i < all.rows; ++i) sum += squared(all(i, j));
    for (int i = 0; i < all.rows; ++i) all(i, j) = all(i, j) / sqrtf(sum);
  }

  template <class T>
  void store(const View<T>& left, const View<T>& right) {
    const View<T> out = matrix<T>(u, left.rows, left.columns);
    for (int i = 0; i < left.rows; ++i)
      for (int j = 0; j < left.columns; ++j) out(i, j) = left(i, j);
    const View<T> turned = matrix<T>(vh, right.columns, right.rows);
    for (int i = 0; i < right.columns; ++i)
      for (int j = 0; j < right.rows; ++j) turned(i, j) = conj(right(j, i));
  }
};
template class Svd<false>;
template class Svd<true>;

}  // namespace popx
