#include "engine/kernels/linalg/FftPasses.hpp"

#include "engine/simd/Registers.hpp"

namespace ipujax::engine::fourier {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

/// A complex number of one lane; compilers vectorise the plain loops over lanes.
template <class T>
struct Number {
  T re;
  T im;
};

template <class T>
inline Number<T> operator+(Number<T> a, Number<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
inline Number<T> operator-(Number<T> a, Number<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
inline Number<T> operator*(Number<T> a, Number<T> w) {
  return {a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}
template <class T>
inline Number<T> byMinusI(Number<T> a) {
  return {a.im, -a.re};
}
template <class T>
inline Number<T> scaled(Number<T> a, T f) {
  return {a.re * f, a.im * f};
}

template <class T>
inline void butterfly2(Number<T>* a) {
  const Number<T> x = a[0];
  a[0] = x + a[1];
  a[1] = x - a[1];
}

template <class T>
inline void butterfly3(Number<T>* a) {
  constexpr T kSine = T(0.866025403784438646763723170752936183L);
  const Number<T> sum = a[1] + a[2];
  const Number<T> turned = byMinusI(scaled(a[1] - a[2], kSine));
  const Number<T> middle = a[0] - scaled(sum, T{0.5});
  a[0] = a[0] + sum;
  a[1] = middle + turned;
  a[2] = middle - turned;
}

template <class T>
inline void butterfly4(Number<T>* a) {
  const Number<T> s02 = a[0] + a[2];
  const Number<T> d02 = a[0] - a[2];
  const Number<T> s13 = a[1] + a[3];
  const Number<T> d13 = byMinusI(a[1] - a[3]);
  a[0] = s02 + s13;
  a[1] = d02 + d13;
  a[2] = s02 - s13;
  a[3] = d02 - d13;
}

template <class T>
inline void butterfly5(Number<T>* a) {
  constexpr T kCos1 = T(0.309016994374947424102293417182819059L);
  constexpr T kCos2 = T(-0.809016994374947424102293417182819059L);
  constexpr T kSin1 = T(0.951056516295153572116439333379382143L);
  constexpr T kSin2 = T(0.587785252292473129168705954639072769L);
  const Number<T> s1 = a[1] + a[4];
  const Number<T> d1 = byMinusI(a[1] - a[4]);
  const Number<T> s2 = a[2] + a[3];
  const Number<T> d2 = byMinusI(a[2] - a[3]);
  const Number<T> m1 = a[0] + scaled(s1, kCos1) + scaled(s2, kCos2);
  const Number<T> m2 = a[0] + scaled(s1, kCos2) + scaled(s2, kCos1);
  const Number<T> t1 = scaled(d1, kSin1) + scaled(d2, kSin2);
  const Number<T> t2 = scaled(d1, kSin2) - scaled(d2, kSin1);
  a[0] = a[0] + s1 + s2;
  a[1] = m1 + t1;
  a[2] = m2 + t2;
  a[3] = m2 - t2;
  a[4] = m1 - t1;
}

template <class T>
inline void butterfly8(Number<T>* a) {
  constexpr T kHalf = T(0.707106781186547524400844362104849039L);
  Number<T> even[4] = {a[0], a[2], a[4], a[6]};
  Number<T> odd[4] = {a[1], a[3], a[5], a[7]};
  butterfly4(even);
  butterfly4(odd);
  odd[1] = scaled(odd[1] + byMinusI(odd[1]), kHalf);
  odd[2] = byMinusI(odd[2]);
  odd[3] = scaled(byMinusI(odd[3]) - odd[3], kHalf);
  for (int k = 0; k < 4; ++k) {
    a[k] = even[k] + odd[k];
    a[k + 4] = even[k] - odd[k];
  }
}

template <int kRadix, class T>
inline void butterfly(Number<T>* a) {
  if constexpr (kRadix == 2) butterfly2(a);
  if constexpr (kRadix == 3) butterfly3(a);
  if constexpr (kRadix == 4) butterfly4(a);
  if constexpr (kRadix == 5) butterfly5(a);
  if constexpr (kRadix == 8) butterfly8(a);
}

template <int kRadix, bool kTwiddled, class T>
inline void columns(std::int64_t span, std::int64_t in_step, const T* __restrict in_re,
                    const T* __restrict in_im, T* __restrict out_re, T* __restrict out_im,
                    const T* w) {
  IPUJAX_IVDEP
  for (std::int64_t q = 0; q < span; ++q) {
    Number<T> a[kRadix];
    for (int k = 0; k < kRadix; ++k) a[k] = {in_re[q + k * in_step], in_im[q + k * in_step]};
    butterfly<kRadix>(a);
    if constexpr (kTwiddled) {
      for (int j = 1; j < kRadix; ++j) a[j] = a[j] * Number<T>{w[2 * j - 2], w[2 * j - 1]};
    }
    for (int j = 0; j < kRadix; ++j) {
      out_re[q + j * span] = a[j].re;
      out_im[q + j * span] = a[j].im;
    }
  }
}

template <int kRadix, class T>
void pass(const Pass<T>& p, const T* in_re, const T* in_im, T* out_re, T* out_im) {
  const std::int64_t step = p.span * p.m;
  columns<kRadix, false, T>(p.span, step, in_re, in_im, out_re, out_im, nullptr);
  for (std::int64_t i = 1; i < p.m; ++i) {
    const std::int64_t in = i * p.span;
    const std::int64_t out = in * kRadix;
    columns<kRadix, true>(p.span, step, in_re + in, in_im + in, out_re + out, out_im + out,
                          p.twiddles + (i - 1) * 2 * (kRadix - 1));
  }
}

/// Any odd radix, by sums and differences of elements k and radix - k.
template <class T>
void generalPass(const Pass<T>& p, const T* in_re, const T* in_im, T* out_re, T* out_im) {
  const std::int64_t radix = p.radix;
  const std::int64_t half = (radix - 1) / 2;
  const std::int64_t step = p.span * p.m;
  T sum_re[kLargestRadix][kLanes], sum_im[kLargestRadix][kLanes];
  T dif_re[kLargestRadix][kLanes], dif_im[kLargestRadix][kLanes];
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t q = 0; q < p.span; q += kLanes) {
      const T* re = in_re + i * p.span + q;
      const T* im = in_im + i * p.span + q;
      T* to_re = out_re + i * p.span * radix + q;
      T* to_im = out_im + i * p.span * radix + q;
      T total_re[kLanes], total_im[kLanes];
      for (int b = 0; b < kLanes; ++b) total_re[b] = re[b], total_im[b] = im[b];
      for (std::int64_t k = 1; k <= half; ++k) {
        for (int b = 0; b < kLanes; ++b) {
          const T x = re[k * step + b], y = re[(radix - k) * step + b];
          const T u = im[k * step + b], v = im[(radix - k) * step + b];
          sum_re[k][b] = x + y, dif_re[k][b] = x - y;
          sum_im[k][b] = u + v, dif_im[k][b] = u - v;
          total_re[b] += sum_re[k][b], total_im[b] += sum_im[k][b];
        }
      }
      for (int b = 0; b < kLanes; ++b) to_re[b] = total_re[b], to_im[b] = total_im[b];
      for (std::int64_t j = 1; j <= half; ++j) {
        T m_re[kLanes], m_im[kLanes], t_re[kLanes] = {}, t_im[kLanes] = {};
        for (int b = 0; b < kLanes; ++b) m_re[b] = re[b], m_im[b] = im[b];
        for (std::int64_t k = 1; k <= half; ++k) {
          const std::int64_t at = j * k % radix;
          const T c = p.roots[2 * at], s = p.roots[2 * at + 1];
          for (int b = 0; b < kLanes; ++b) {
            m_re[b] += c * sum_re[k][b], m_im[b] += c * sum_im[k][b];
            t_re[b] += s * dif_im[k][b], t_im[b] -= s * dif_re[k][b];
          }
        }
        const auto put = [&](std::int64_t at, T sign) {
          Number<T> w{1, 0};
          if (i > 0) {
            const T* t = p.twiddles + ((i - 1) * (radix - 1) + at - 1) * 2;
            w = {t[0], t[1]};
          }
          for (int b = 0; b < kLanes; ++b) {
            const Number<T> a = Number<T>{m_re[b] + sign * t_re[b], m_im[b] + sign * t_im[b]} * w;
            to_re[at * p.span + b] = a.re;
            to_im[at * p.span + b] = a.im;
          }
        };
        put(j, 1);
        put(radix - j, -1);
      }
    }
  }
}

template <class T>
void run(const Pass<T>& p, const T* in_re, const T* in_im, T* out_re, T* out_im) {
  switch (p.radix) {
    case 2:
      return pass<2>(p, in_re, in_im, out_re, out_im);
    case 3:
      return pass<3>(p, in_re, in_im, out_re, out_im);
    case 4:
      return pass<4>(p, in_re, in_im, out_re, out_im);
    case 5:
      return pass<5>(p, in_re, in_im, out_re, out_im);
    case 8:
      return pass<8>(p, in_re, in_im, out_re, out_im);
    default:
      return generalPass(p, in_re, in_im, out_re, out_im);
  }
}

template <class T>
void scale(T* x, T factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

template <class T>
void multiply(T* __restrict re, T* __restrict im, const T* __restrict w_re,
              const T* __restrict w_im, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Number<T> a = Number<T>{re[i], im[i]} * Number<T>{w_re[i], w_im[i]};
    re[i] = a.re;
    im[i] = a.im;
  }
}

/// z = e + i o of the even and odd halves' transforms; the result is e + w o.
template <class T>
void unpack(const T* __restrict z_re, const T* __restrict z_im, std::int64_t half,
            const T* __restrict w_re, const T* __restrict w_im, T* __restrict out_re,
            T* __restrict out_im) {
  for (std::int64_t k = 1; k < half; ++k) {
    const std::int64_t back = half - k;
    const Number<T> even{T{0.5} * (z_re[k] + z_re[back]), T{0.5} * (z_im[k] - z_im[back])};
    const Number<T> odd{T{0.5} * (z_im[k] + z_im[back]), T{0.5} * (z_re[back] - z_re[k])};
    const Number<T> x = even + odd * Number<T>{w_re[k], w_im[k]};
    out_re[k] = x.re;
    out_im[k] = x.im;
  }
  out_re[0] = z_re[0] + z_im[0];
  out_re[half] = z_re[0] - z_im[0];
  out_im[0] = 0;
  out_im[half] = 0;
}

template <class T>
void pack(const T* __restrict in_re, const T* __restrict in_im, std::int64_t half,
          const T* __restrict w_re, const T* __restrict w_im, T* __restrict z_re,
          T* __restrict z_im) {
  for (std::int64_t k = 1; k < half; ++k) {
    const std::int64_t back = half - k;
    const Number<T> even{T{0.5} * (in_re[k] + in_re[back]), T{0.5} * (in_im[k] - in_im[back])};
    const Number<T> difference{T{0.5} * (in_re[k] - in_re[back]),
                               T{0.5} * (in_im[k] + in_im[back])};
    const Number<T> odd = difference * Number<T>{w_re[k], -w_im[k]};
    z_re[k] = even.re - odd.im;
    z_im[k] = even.im + odd.re;
  }
  const T first = in_re[0];
  const T last = in_re[half];
  z_re[0] = T{0.5} * (first + last);
  z_im[0] = T{0.5} * (first - last);
}

}  // namespace

#define IPUJAX_PASSES(T) \
  { run<T>, scale<T>, multiply<T>, unpack<T>, pack<T> }
extern const PassTable<float> kFloatPasses;  // a const is local otherwise
extern const PassTable<double> kDoublePasses;
const PassTable<float> kFloatPasses IPUJAX_PASSES(float);
const PassTable<double> kDoublePasses IPUJAX_PASSES(double);
#undef IPUJAX_PASSES

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::fourier
