#pragma once
#include <math.h>

/// For codelets: real and complex numbers under one set of names, and matrices as views of a field.
namespace popx {

struct Complex {
  float re, im;
};

inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator-(Complex a) { return {-a.re, -a.im}; }
inline Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
inline Complex operator*(Complex a, float b) { return {a.re * b, a.im * b}; }
inline Complex operator*(float a, Complex b) { return b * a; }
inline Complex operator/(Complex a, float b) { return {a.re / b, a.im / b}; }
/// Divides by the larger part first, so that squares cannot overflow (Smith).
inline Complex operator/(Complex a, Complex b) {
  if (fabsf(b.re) >= fabsf(b.im)) {
    const float ratio = b.im / b.re;
    const float below = b.re + b.im * ratio;
    return {(a.re + a.im * ratio) / below, (a.im - a.re * ratio) / below};
  }
  const float ratio = b.re / b.im;
  const float below = b.im + b.re * ratio;
  return {(a.re * ratio + a.im) / below, (a.im * ratio - a.re) / below};
}
template <class T>
inline T& operator+=(T& a, T b) {
  return a = a + b;
}
template <class T>
inline T& operator-=(T& a, T b) {
  return a = a - b;
}

inline float conj(float a) { return a; }
inline Complex conj(Complex a) { return {a.re, -a.im}; }
inline float real(float a) { return a; }
inline float real(Complex a) { return a.re; }
inline float imag(float) { return 0.0f; }
inline float imag(Complex a) { return a.im; }
inline float squared(float a) { return a * a; }
inline float squared(Complex a) { return a.re * a.re + a.im * a.im; }
inline float magnitude(float a) { return fabsf(a); }
inline float magnitude(Complex a) { return hypotf(a.re, a.im); }
/// The size by which LAPACK compares pivots.
inline float taxicab(float a) { return fabsf(a); }
inline float taxicab(Complex a) { return fabsf(a.re) + fabsf(a.im); }
inline bool isFinite(float a) { return a - a == 0.0f; }
inline bool isFinite(Complex a) { return isFinite(a.re) && isFinite(a.im); }

template <bool complex>
struct NumberOf {
  using Type = float;
  static float make(float re, float) { return re; }
};
template <>
struct NumberOf<true> {
  using Type = Complex;
  static Complex make(float re, float im) { return {re, im}; }
};

/// A number of type T without an imaginary part.
template <class T>
inline T number(float re);
template <>
inline float number<float>(float re) {
  return re;
}
template <>
inline Complex number<Complex>(float re) {
  return {re, 0.0f};
}

/// Element (i, j) is data[i * down + j * right].
template <class T>
struct View {
  T* data;
  int rows, columns, down, right;

  T& operator()(int i, int j) const { return data[i * down + j * right]; }
  View transposed() const { return {data, columns, rows, right, down}; }
  /// From row i and column j on.
  View from(int i, int j) const { return {&(*this)(i, j), rows - i, columns - j, down, right}; }
};

/// A field of a vertex as a row-major matrix; complex numbers are pairs of floats.
template <class T, class Field>
inline View<T> matrix(Field& field, int rows, int columns) {
  return {reinterpret_cast<T*>(&field[0]), rows, columns, columns, 1};
}

template <class T>
inline void fill(const View<T>& a, T value) {
  for (int i = 0; i < a.rows; ++i)
    for (int j = 0; j < a.columns; ++j) a(i, j) = value;
}

template <class T>
inline void setIdentity(const View<T>& a) {
  for (int i = 0; i < a.rows; ++i)
    for (int j = 0; j < a.columns; ++j) a(i, j) = number<T>(i == j ? 1.0f : 0.0f);
}

template <class T>
inline void swapColumns(const View<T>& a, int p, int q) {
  for (int i = 0; i < a.rows; ++i) {
    const T kept = a(i, p);
    a(i, p) = a(i, q);
    a(i, q) = kept;
  }
}

template <class T>
inline bool allFinite(const View<T>& a) {
  for (int i = 0; i < a.rows; ++i)
    for (int j = 0; j < a.columns; ++j)
      if (!isFinite(a(i, j))) return false;
  return true;
}

}  // namespace popx
