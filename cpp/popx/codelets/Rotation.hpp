#pragma once
#include "Numbers.hpp"

/// For codelets: Jacobi's rotation of two columns.
namespace popx {

/// The unitary 2 x 2 matrix that makes the Hermitian [[first, cross], [conj(cross), second]]
/// diagonal, by the smaller angle.
template <class T>
struct Rotation {
  Rotation(float first, float second, T cross) : size(magnitude(cross)) {
    const float ratio = (second - first) / (2.0f * size);
    tangent = copysignf(1.0f, ratio) / (fabsf(ratio) + hypotf(ratio, 1.0f));
    cosine = 1.0f / sqrtf(1.0f + tangent * tangent);
    sine = tangent * cosine;
    phase = conj(cross) / size;
  }

  /// Columns p and q of a, times the matrix.
  void columns(const View<T>& a, int p, int q) const {
    for (int i = 0; i < a.rows; ++i) {
      const T x = a(i, p);
      const T y = a(i, q) * phase;
      a(i, p) = x * cosine - y * sine;
      a(i, q) = x * sine + y * cosine;
    }
  }

  float size, tangent, cosine, sine;
  T phase;
};

}  // namespace popx
