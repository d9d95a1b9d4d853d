#include <poplar/Vertex.hpp>

#include "Reflectors.hpp"
#include "Rotation.hpp"

// Hermitian matrices of which one triangle is read: one matrix, one worker.
namespace popx {

/// Jacobi's method: sweeps of rotations until all off-diagonal elements are negligible.
template <bool complex>
class Eigh : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> a;         ///< [n, n], overwritten
  poplar::Output<poplar::Vector<float>> vectors;  ///< [n, n], columns
  poplar::Output<poplar::Vector<float>> values;   ///< [n], ascending
  poplar::Output<int> status;
  unsigned n;
  bool lower;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    const View<T> view = matrix<T>(a, n, n);
    const View<T> v = matrix<T>(vectors, n, n);
    complete(lower ? view : view.transposed());
    setIdentity(v);
    *status = 1;
    if (allFinite(view)) {
      for (int sweep = 0; sweep < 30 && *status != 0; ++sweep) *status = rotateAll(view, v) ? 1 : 0;
    }
    for (int i = 0; i < view.rows; ++i) values[i] = real(view(i, i));
    for (int i = 0; i < view.rows; ++i) {
      int least = i;
      for (int j = i + 1; j < view.rows; ++j)
        if (values[j] < values[least]) least = j;
      const float kept = values[i];
      values[i] = values[least];
      values[least] = kept;
      if (least != i) swapColumns(v, i, least);
    }
    return true;
  }

 private:
  /// Makes the matrix Hermitian from its lower triangle.
  template <class T>
  static void complete(const View<T>& a) {
    for (int i = 0; i < a.rows; ++i) {
      a(i, i) = number<T>(real(a(i, i)));
      for (int j = 0; j < i; ++j) a(j, i) = conj(a(i, j));
    }
  }

  /// One sweep; false if nothing was left to do.
  template <class T>
  static bool rotateAll(const View<T>& a, const View<T>& v) {
    bool any = false;
    for (int p = 0; p < a.rows; ++p) {
      for (int q = p + 1; q < a.rows; ++q) {
        const float size = magnitude(a(p, q));
        const float first = fabsf(real(a(p, p)));
        const float second = fabsf(real(a(q, q)));
        if (first + 0.25f * size == first && second + 0.25f * size == second) continue;
        any = true;
        const Rotation<T> rotation(real(a(p, p)), real(a(q, q)), a(p, q));
        rotateBothSides(a, p, q, rotation);
        rotation.columns(v, p, q);
      }
    }
    return any;
  }

  template <class T>
  static void rotateBothSides(const View<T>& a, int p, int q, const Rotation<T>& rotation) {
    const float first = real(a(p, p)) - rotation.tangent * rotation.size;
    const float second = real(a(q, q)) + rotation.tangent * rotation.size;
    rotation.columns(a, p, q);
    for (int k = 0; k < a.rows; ++k) {
      a(p, k) = conj(a(k, p));
      a(q, k) = conj(a(k, q));
    }
    a(p, p) = number<T>(first);
    a(q, q) = number<T>(second);
    a(p, q) = number<T>(0.0f);
    a(q, p) = number<T>(0.0f);
  }
};
template class Eigh<false>;
template class Eigh<true>;

/// Tridiagonal form by reflectors from both sides.
template <bool complex>
class Tridiagonal : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> a;          ///< [n, n], one triangle replaced
  poplar::Output<poplar::Vector<float>> diagonal;  ///< [n]
  poplar::Output<poplar::Vector<float>> between;   ///< [n - 1]
  poplar::Output<poplar::Vector<float>> tau;       ///< [n - 1]
  poplar::InOut<poplar::Vector<float>> product;    ///< [n], workspace
  unsigned n;
  bool lower;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    const int size = n;
    // The upper triangle is a lower one whose rows and columns are counted from the end: the
    // element (i, j) of that one is (n - 1 - i, n - 1 - j).
    View<T> view = matrix<T>(a, size, size);
    if (!lower) view = {&view(size - 1, size - 1), size, size, -size, -1};
    T* taus = reinterpret_cast<T*>(&tau[0]);
    T* w = reinterpret_cast<T*>(&product[0]);
    for (int i = 0; i < size; ++i) view(i, i) = number<T>(real(view(i, i)));
    for (int k = 0; k + 1 < size; ++k) {
      const int at = lower ? k : size - 2 - k;
      taus[at] = reflect(view.from(k + 1, k));
      between[at] = real(view(k + 1, k));
      update(view.from(k + 2, k), taus[at], view.from(k + 1, k + 1), w);
      view(k + 1, k + 1) = number<T>(real(view(k + 1, k + 1)));
    }
    for (int i = 0; i < size; ++i) diagonal[lower ? i : size - 1 - i] = real(view(i, i));
    return true;
  }

 private:
  /// The lower triangle of H^H B H, H = I - tau v v^H, v = (1, x), by one update of rank 2.
  template <class T>
  static void update(const View<T>& x, T tau, const View<T>& b, T* w) {
    const auto v = [&](int i) { return i == 0 ? number<T>(1.0f) : x(i - 1, 0); };
    T inner = number<T>(0.0f);
    for (int i = 0; i < b.rows; ++i) {
      T sum = number<T>(0.0f);
      for (int j = 0; j < b.rows; ++j) sum += (j <= i ? b(i, j) : conj(b(j, i))) * v(j);
      w[i] = tau * sum;
      inner += conj(w[i]) * v(i);
    }
    const T half = -(tau * inner) * 0.5f;
    for (int i = 0; i < b.rows; ++i) w[i] += half * v(i);
    for (int i = 0; i < b.rows; ++i)
      for (int j = 0; j <= i; ++j) b(i, j) -= v(i) * conj(w[j]) + w[i] * conj(v(j));
  }
};
template class Tridiagonal<false>;
template class Tridiagonal<true>;

}  // namespace popx
