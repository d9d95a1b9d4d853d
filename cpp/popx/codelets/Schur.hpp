#pragma once
#include "Reflectors.hpp"

/// For codelets: the QR iteration that makes a Hessenberg matrix triangular.
namespace popx {

/// G = [[c, s], [-conj(s), c]] for two neighbouring rows and columns.
template <class T>
struct Givens {
  float c;
  T s;

  /// G (x, y) = (r, 0).
  static Givens zeroing(T x, T y) {
    const float most = fmaxf(taxicab(x), taxicab(y));
    if (most == 0.0f) return {1.0f, number<T>(0.0f)};
    x = x / most;
    y = y / most;
    // A number with few bits has no reliable direction.
    if (taxicab(x) < 1e-30f) return {0.0f, conj(y) / magnitude(y)};
    const float first = magnitude(x);
    const float all = hypotf(first, magnitude(y));
    return {first / all, (x / first) * (conj(y) / all)};
  }

  /// G A G^H with G in rows and columns k, k + 1 of a matrix whose nonzero elements there begin in
  /// column `first` and end in row `last`, and Q G^H.
  void turn(const View<T>& a, const View<T>& q, int k, int first, int last) const {
    for (int j = first; j < a.columns; ++j) {
      const T x = a(k, j);
      const T y = a(k + 1, j);
      a(k, j) = x * c + s * y;
      a(k + 1, j) = y * c - conj(s) * x;
    }
    columns(a, k, last);
    columns(q, k, q.rows - 1);
  }

 private:
  void columns(const View<T>& a, int k, int last) const {
    for (int i = 0; i <= last; ++i) {
      const T x = a(i, k);
      const T y = a(i, k + 1);
      a(i, k) = x * c + conj(s) * y;
      a(i, k + 1) = y * c - s * x;
    }
  }
};

/// Hessenberg form by reflectors from both sides; they stay below the subdiagonal.
template <class T>
inline void reduceToHessenberg(const View<T>& a, T* tau) {
  for (int k = 0; k + 1 < a.rows; ++k) {
    tau[k] = reflect(a.from(k + 1, k));
    const View<T> x = a.from(k + 2, k);
    applyRight(x, tau[k], a.from(0, k + 1));
    applyLeft(x, conj(tau[k]), a.from(k + 1, k + 1));
  }
}

/// Q of the Hessenberg form, whose reflectors become zeros. q has no rows if it is not wanted.
template <class T>
inline void takeReflectors(const View<T>& a, const T* tau, const View<T>& q) {
  if (q.rows > 0) setIdentity(q);
  for (int k = a.rows - 2; k >= 0; --k) {
    if (q.rows > 0) applyLeft(a.from(k + 2, k), tau[k], q.from(k + 1, k + 1));
    for (int i = k + 2; i < a.rows; ++i) a(i, k) = number<T>(0.0f);
  }
}

constexpr float kLeast = 0x1p-120f;  ///< smaller elements count as zero

/// The first row of the unreduced block that ends in row `last`.
template <class T>
inline int blockOf(const View<T>& a, int last) {
  int first = last;
  for (; first > 0; --first) {
    const float around = taxicab(a(first - 1, first - 1)) + taxicab(a(first, first));
    if (taxicab(a(first, first - 1)) > fmaxf(0x1p-24f * around, kLeast)) continue;
    a(first, first - 1) = number<T>(0.0f);
    break;
  }
  return first;
}

inline Complex root(Complex x) {
  const float size = magnitude(x);
  const float re = sqrtf(0.5f * (size + fabsf(x.re)));
  if (re == 0.0f) return {0.0f, 0.0f};
  const float im = 0.5f * x.im / re;
  return x.re >= 0.0f ? Complex{re, im} : Complex{fabsf(im), copysignf(re, x.im)};
}

/// One eigenvalue of the last 2 x 2 block, the one nearer to its last element (Wilkinson).
inline Complex shiftOf(const View<Complex>& a, int last, int tries) {
  if (tries % 10 == 0) {  // in case it cycles
    return a(last, last) + Complex{0.75f * taxicab(a(last, last - 1)), 0.0f};
  }
  const float size = fmaxf(fmaxf(taxicab(a(last - 1, last - 1)), taxicab(a(last, last))),
                           fmaxf(taxicab(a(last - 1, last)), taxicab(a(last, last - 1))));
  const Complex half = (a(last - 1, last - 1) / size - a(last, last) / size) * 0.5f;
  const Complex product = (a(last - 1, last) / size) * (a(last, last - 1) / size);
  Complex beside = root(half * half + product);
  if (half.re * beside.re + half.im * beside.im < 0.0f) beside = -beside;
  const Complex below = half + beside;
  if (taxicab(below) == 0.0f) return a(last, last);
  return a(last, last) - (product / below) * size;
}

/// Complex numbers: single shifts. False if it does not converge.
inline bool triangularise(const View<Complex>& a, const View<Complex>& q) {
  int tries = 0;
  for (int last = a.rows - 1; last > 0;) {
    const int first = blockOf(a, last);
    if (first == last) {
      --last;
      tries = 0;
      continue;
    }
    if (++tries > 60) return false;
    Complex x = a(first, first) - shiftOf(a, last, tries);
    Complex y = a(first + 1, first);
    for (int k = first; k < last; ++k) {
      const auto turn = Givens<Complex>::zeroing(x, y);
      turn.turn(a, q, k, k > first ? k - 1 : k, k + 2 < last ? k + 2 : last);
      if (k > first) a(k + 1, k - 1) = {0.0f, 0.0f};
      if (k + 1 == last) break;
      x = a(k + 1, k);
      y = a(k + 2, k);
    }
  }
  return true;
}

/// Makes the 2 x 2 block at k triangular if its eigenvalues are real, else its diagonal constant.
inline void standardise(const View<float>& a, const View<float>& q, int k) {
  for (int pass = 0; pass < 2; ++pass) {
    const float b = a(k, k + 1), c = a(k + 1, k);
    const float difference = a(k, k) - a(k + 1, k + 1);
    if (c == 0.0f || (difference == 0.0f && b != 0.0f && (b < 0.0f) != (c < 0.0f))) return;
    const float half = 0.5f * difference;
    const float scale = fmaxf(fabsf(half), fmaxf(fabsf(b), fabsf(c)));
    const float inside = half / scale * half + b / scale * c;
    if (inside >= 0.0f) {
      const float z = half + copysignf(sqrtf(scale) * sqrtf(inside), half);
      const float size = hypotf(c, z);
      Givens<float>{z / size, c / size}.turn(a, q, k, k, k + 1);
      a(k + 1, k) = 0.0f;
      return;
    }
    const float sum = b + c;
    const float size = hypotf(sum, difference);
    const float cosine = sqrtf(0.5f * (1.0f + fabsf(sum) / size));
    const float sine = -half / (size * cosine) * copysignf(1.0f, sum);
    Givens<float>{cosine, sine}.turn(a, q, k, k, k + 1);
    const float mean = 0.5f * (a(k, k) + a(k + 1, k + 1));
    a(k, k) = mean;
    a(k + 1, k + 1) = mean;
  }
}

/// The first column of (A - s I)(A - t I), s and t the shifts, up to a factor.
inline void firstColumn(const View<float>& a, int first, int last, int tries, float* start) {
  float size = 0.0f;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      size = fmaxf(size, fabsf(a(first + i, first + j)));
      size = fmaxf(size, fabsf(a(last - i, last - j)));
    }
  }
  size = fmaxf(size, fabsf(a(first + 2, first + 1)));
  const auto at = [&](int i, int j) { return a(i, j) / size; };
  const float end = at(last, last);
  float sum = at(last - 1, last - 1) + end;
  float product = at(last - 1, last - 1) * end - at(last - 1, last) * at(last, last - 1);
  if (tries % 10 == 0) {  // in case it cycles
    const float step = fabsf(at(last, last - 1)) + fabsf(at(last - 1, last - 2));
    sum = 2.0f * end + 1.5f * step;
    product = (end + 0.75f * step) * (end + 0.75f * step) + 0.4375f * step * step;
  }
  const float h = at(first, first), below = at(first + 1, first);
  start[0] = h * h + at(first, first + 1) * below - sum * h + product;
  start[1] = below * (h + at(first + 1, first + 1) - sum);
  start[2] = below * at(first + 2, first + 1);
}

/// A sweep with both shifts of the last 2 x 2 block, in real numbers (Francis).
inline void sweep(const View<float>& a, const View<float>& q, int first, int last, int tries) {
  float start[3];
  firstColumn(a, first, last, tries, start);
  for (int k = first; k < last; ++k) {
    const int size = k + 2 <= last ? 3 : 2;
    if (k > first)
      for (int i = 0; i < size; ++i) start[i] = a(k + i, k - 1);
    const View<float> vector = {start, size, 1, 1, 1};
    const float tau = reflect(vector);
    const View<float> x = vector.from(1, 0);
    const int from = k > first ? k - 1 : k;
    const int to = k + 3 < last ? k + 3 : last;
    applyLeft(x, tau, {&a(k, from), size, a.columns - from, a.down, a.right});
    applyRight(x, tau, {&a(0, k), to + 1, size, a.down, a.right});
    applyRight(x, tau, {q.data + k * q.right, q.rows, size, q.down, q.right});
    if (k > first)
      for (int i = 1; i < size; ++i) a(k + i, k - 1) = 0.0f;
  }
}

/// Real numbers: blocks of 2 x 2 stay for pairs of complex eigenvalues.
inline bool triangularise(const View<float>& a, const View<float>& q) {
  int tries = 0;
  for (int last = a.rows - 1; last > 0;) {
    const int first = blockOf(a, last);
    if (first >= last - 1) {
      if (first < last) standardise(a, q, first);
      last = first - 1;
      tries = 0;
      continue;
    }
    if (++tries > 60) return false;
    sweep(a, q, first, last, tries);
  }
  return true;
}

}  // namespace popx
