#pragma once
#include "Numbers.hpp"

/// For codelets: Householder's reflectors H = I - tau v v^H, v = (1, x), by LAPACK's conventions.
namespace popx {

/// The length of a column, without overflow.
template <class T>
inline float length(const View<T>& x) {
  float largest = 0.0f;
  for (int i = 0; i < x.rows; ++i) largest = fmaxf(largest, taxicab(x(i, 0)));
  if (largest == 0.0f || !isFinite(largest)) return largest;
  float sum = 0.0f;
  for (int i = 0; i < x.rows; ++i) sum += squared(x(i, 0) / largest);
  return largest * sqrtf(sum);
}

template <class T>
struct Reflection;  ///< tau of H with H^H (alpha, x) = (beta, 0)
template <>
struct Reflection<float> {
  static float tau(float alpha, float beta) { return (beta - alpha) / beta; }
};
template <>
struct Reflection<Complex> {
  static Complex tau(Complex alpha, float beta) {
    return {(beta - alpha.re) / beta, -alpha.im / beta};
  }
};

/// Replaces column 0 of `a` by (beta, x); beta is real. Returns tau, 0 if H is I.
template <class T>
inline T reflect(const View<T>& a) {
  float most = 0.0f;
  for (int i = 0; i < a.rows; ++i) most = fmaxf(most, taxicab(a(i, 0)));
  // Tiny numbers are scaled up: they have few bits, and 1 / (alpha - beta) would overflow.
  const float lift = most < 0x1p-60f ? 0x1p60f : 1.0f;
  for (int i = 0; i < a.rows; ++i) a(i, 0) = a(i, 0) * lift;
  const View<T> x = a.from(1, 0);
  const T alpha = a(0, 0);
  const float below = length(x);
  const bool reflected = below != 0.0f || imag(alpha) != 0.0f;
  const float beta =
      reflected ? -copysignf(hypotf(magnitude(alpha), below), real(alpha)) : real(alpha);
  a(0, 0) = number<T>(beta / lift);
  if (!reflected) return number<T>(0.0f);
  const T scale = number<T>(1.0f) / (alpha - number<T>(beta));
  for (int i = 0; i < x.rows; ++i) x(i, 0) = x(i, 0) * scale;
  return Reflection<T>::tau(alpha, beta);
}

/// C = (I - tau v v^H) C; x: v below its leading 1.
template <class T>
inline void applyLeft(const View<T>& x, T tau, const View<T>& c) {
  for (int j = 0; j < c.columns; ++j) {
    T sum = c(0, j);
    for (int i = 1; i < c.rows; ++i) sum += conj(x(i - 1, 0)) * c(i, j);
    sum = sum * tau;
    c(0, j) -= sum;
    for (int i = 1; i < c.rows; ++i) c(i, j) -= x(i - 1, 0) * sum;
  }
}

/// C = C (I - tau v v^H).
template <class T>
inline void applyRight(const View<T>& x, T tau, const View<T>& c) {
  for (int i = 0; i < c.rows; ++i) {
    T sum = c(i, 0);
    for (int j = 1; j < c.columns; ++j) sum += c(i, j) * x(j - 1, 0);
    sum = sum * tau;
    c(i, 0) -= sum;
    for (int j = 1; j < c.columns; ++j) c(i, j) -= sum * conj(x(j - 1, 0));
  }
}

/// Makes column k of `a` zero below its diagonal and applies H_k^H to the columns after it.
template <class T>
inline T eliminate(const View<T>& a, int k) {
  const T tau = reflect(a.from(k, k));
  if (k + 1 < a.columns) applyLeft(a.from(k + 1, k), conj(tau), a.from(k, k + 1));
  return tau;
}

/// Replaces the `count` reflectors by the first columns of H_0 H_1 ...; columns from `count` on
/// start as unit vectors.
template <class T>
inline void expandReflectors(const View<T>& a, const T* tau, int count) {
  for (int j = count; j < a.columns; ++j)
    for (int i = 0; i < a.rows; ++i) a(i, j) = number<T>(i == j ? 1.0f : 0.0f);
  for (int k = count - 1; k >= 0; --k) {
    if (k + 1 < a.columns) applyLeft(a.from(k + 1, k), tau[k], a.from(k, k + 1));
    for (int i = k + 1; i < a.rows; ++i) a(i, k) = -tau[k] * a(i, k);
    a(k, k) = number<T>(1.0f) - tau[k];
    for (int i = 0; i < k; ++i) a(i, k) = number<T>(0.0f);
  }
}

}  // namespace popx
