#include <poplar/Vertex.hpp>

#include "Schur.hpp"

// Matrices without symmetry: one matrix, one worker.
namespace popx {

template <bool complex>
class Hessenberg : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> a;     ///< [n, n], replaced by H over the reflectors
  poplar::Output<poplar::Vector<float>> tau;  ///< [n - 1]
  unsigned n;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    reduceToHessenberg(matrix<T>(a, n, n), reinterpret_cast<T*>(&tau[0]));
    return true;
  }
};
template class Hessenberg<false>;
template class Hessenberg<true>;

/// A = Q T Q^H.
template <bool complex>
class Schur : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> a;        ///< [n, n], replaced by T
  poplar::InOut<poplar::Vector<float>> q;        ///< [n, n], not written without vectors
  poplar::InOut<poplar::Vector<float>> tau;      ///< [n], workspace
  poplar::Output<poplar::Vector<float>> values;  ///< [n], complex
  poplar::Output<int> status;
  unsigned n;
  bool vectors;

  bool compute() {
    using T = typename NumberOf<complex>::Type;
    const View<T> view = matrix<T>(a, n, n);
    const View<T> turns = matrix<T>(q, vectors ? n : 0, n);
    T* taus = reinterpret_cast<T*>(&tau[0]);
    *status = 1;
    if (allFinite(view)) {
      reduceToHessenberg(view, taus);
      takeReflectors(view, taus, turns);
      if (triangularise(view, turns)) *status = 0;
    }
    for (int i = 0; i < view.rows; ++i) {
      values[2 * i] = real(view(i, i));
      values[2 * i + 1] = imag(view(i, i));
    }
    if (!complex) pairs(view);
    return true;
  }

 private:
  /// The imaginary parts of 2 x 2 blocks' eigenvalues, the positive one first.
  template <class T>
  void pairs(const View<T>& a) {
    for (int i = 0; i + 1 < a.rows; ++i) {
      if (taxicab(a(i + 1, i)) == 0.0f) continue;
      const float part = sqrtf(taxicab(a(i + 1, i))) * sqrtf(taxicab(a(i, i + 1)));
      values[2 * i + 1] = part;
      values[2 * i + 3] = -part;
    }
  }
};
template class Schur<false>;
template class Schur<true>;

/// A real Schur form as a complex one, without blocks.
class ComplexSchur : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> a;       ///< [n, n]
  poplar::Input<poplar::Vector<float>> q;       ///< [n, n]
  poplar::Input<poplar::Vector<float>> values;  ///< [n], complex
  poplar::InOut<poplar::Vector<float>> t;       ///< [n, n], complex
  poplar::InOut<poplar::Vector<float>> z;       ///< [n, n], complex
  unsigned n;

  bool compute() {
    const View<Complex> triangle = matrix<Complex>(t, n, n);
    const View<Complex> vectors = matrix<Complex>(z, n, n);
    for (unsigned i = 0; i < n * n; ++i) {
      triangle.data[i] = {a[i], 0.0f};
      vectors.data[i] = {q[i], 0.0f};
    }
    for (int k = 0; k + 1 < triangle.rows; ++k) {
      const float part = values[2 * k + 1];
      if (!(part > 0.0f)) continue;
      const auto turn = Givens<Complex>::zeroing(triangle(k, k + 1), {0.0f, part});
      turn.turn(triangle, vectors, k, k, k + 1);
      triangle(k + 1, k) = {0.0f, 0.0f};
      triangle(k, k) = {values[2 * k], part};
      triangle(k + 1, k + 1) = {values[2 * k], -part};
    }
    return true;
  }
};

/// Left and right eigenvectors, by substitution in T, of length 1 with a real largest component.
class Eigenvectors : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> t;         ///< [n, n], complex
  poplar::Input<poplar::Vector<float>> q;         ///< [n, n], complex
  poplar::Output<poplar::Vector<float>> vectors;  ///< [n, n], complex, columns
  poplar::InOut<poplar::Vector<float>> solution;  ///< [n], complex, workspace
  unsigned n;
  bool left;
  bool pairs;  ///< of a real matrix

  bool compute() {
    const View<const Complex> triangle = matrix<const Complex>(t, n, n);
    const View<const Complex> basis = matrix<const Complex>(q, n, n);
    const View<Complex> out = matrix<Complex>(vectors, n, n);
    Complex* x = reinterpret_cast<Complex*>(&solution[0]);
    const int size = n;
    for (int k = 0; k < size; ++k) {
      const float part = triangle(k, k).im;
      if (pairs && part < 0.0f) {
        for (int i = 0; i < size; ++i) out(i, k) = conj(out(i, k - 1));
        continue;
      }
      left ? substituteForward(triangle, k, x) : substituteBack(triangle, k, x);
      for (int i = 0; i < size; ++i) {
        Complex sum = {0.0f, 0.0f};
        for (int j = left ? k : 0; j < (left ? size : k + 1); ++j) sum += basis(i, j) * x[j];
        out(i, k) = sum;
      }
      normalise(out.from(0, k), pairs && part == 0.0f);
    }
    return true;
  }

 private:
  /// Keeps x from overflowing: element i of [begin, end) was just found.
  static void limit(Complex* x, int i, int begin, int end) {
    const float size = taxicab(x[i]);
    if (!(size > 1e10f) || !isFinite(size)) return;
    for (int j = begin; j < end; ++j) x[j] = x[j] / size;
  }

  /// A diagonal element of T - value, not smaller than the rounding error of the difference.
  static Complex divisor(Complex element, Complex value) {
    const Complex difference = element - value;
    const float least = fmaxf(0x1p-24f * taxicab(value), 1e-30f);
    return taxicab(difference) < least ? Complex{least, 0.0f} : difference;
  }

  static void substituteBack(const View<const Complex>& t, int k, Complex* x) {
    x[k] = {1.0f, 0.0f};
    for (int i = k - 1; i >= 0; --i) {
      Complex sum = {0.0f, 0.0f};
      for (int j = i + 1; j <= k; ++j) sum += t(i, j) * x[j];
      x[i] = -sum / divisor(t(i, i), t(k, k));
      limit(x, i, i, k + 1);
    }
  }

  static void substituteForward(const View<const Complex>& t, int k, Complex* x) {
    x[k] = {1.0f, 0.0f};
    for (int j = k + 1; j < t.rows; ++j) {
      Complex sum = {0.0f, 0.0f};
      for (int i = k; i < j; ++i) sum += conj(x[i]) * t(i, j);
      x[j] = conj(-sum / divisor(t(j, j), t(k, k)));
      limit(x, j, k, j + 1);
    }
  }

  static void normalise(const View<Complex>& v, bool real) {
    const float size = length(v);
    int largest = 0;
    for (int i = 1; i < v.rows; ++i)
      if (squared(v(i, 0) / size) > squared(v(largest, 0) / size)) largest = i;
    const Complex turn = conj(v(largest, 0)) / magnitude(v(largest, 0));
    for (int i = 0; i < v.rows; ++i) {
      v(i, 0) = v(i, 0) / size * turn;
      if (real || i == largest) v(i, 0).im = 0.0f;
    }
  }
};

}  // namespace popx
