#include "engine/kernels/FftPasses.hpp"

#include "engine/simd/Registers.hpp"

namespace ipujax::engine::fourier {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

/// One complex number of each of the lanes in a register; plain loops that compilers vectorise.
struct Number {
  float re;
  float im;
};

inline Number operator+(Number a, Number b) { return {a.re + b.re, a.im + b.im}; }
inline Number operator-(Number a, Number b) { return {a.re - b.re, a.im - b.im}; }
inline Number operator*(Number a, Number w) {
  return {a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}
inline Number byMinusI(Number a) { return {a.im, -a.re}; }
inline Number scaled(Number a, float f) { return {a.re * f, a.im * f}; }

inline void butterfly2(Number* a) {
  const Number x = a[0];
  a[0] = x + a[1];
  a[1] = x - a[1];
}

inline void butterfly3(Number* a) {
  constexpr float kSine = 0.866025403784438646763723170752936183f;
  const Number sum = a[1] + a[2];
  const Number turned = byMinusI(scaled(a[1] - a[2], kSine));
  const Number middle = a[0] - scaled(sum, 0.5f);
  a[0] = a[0] + sum;
  a[1] = middle + turned;
  a[2] = middle - turned;
}

inline void butterfly4(Number* a) {
  const Number s02 = a[0] + a[2];
  const Number d02 = a[0] - a[2];
  const Number s13 = a[1] + a[3];
  const Number d13 = byMinusI(a[1] - a[3]);
  a[0] = s02 + s13;
  a[1] = d02 + d13;
  a[2] = s02 - s13;
  a[3] = d02 - d13;
}

inline void butterfly5(Number* a) {
  constexpr float kCos1 = 0.309016994374947424102293417182819059f;
  constexpr float kCos2 = -0.809016994374947424102293417182819059f;
  constexpr float kSin1 = 0.951056516295153572116439333379382143f;
  constexpr float kSin2 = 0.587785252292473129168705954639072769f;
  const Number s1 = a[1] + a[4];
  const Number d1 = byMinusI(a[1] - a[4]);
  const Number s2 = a[2] + a[3];
  const Number d2 = byMinusI(a[2] - a[3]);
  const Number m1 = a[0] + scaled(s1, kCos1) + scaled(s2, kCos2);
  const Number m2 = a[0] + scaled(s1, kCos2) + scaled(s2, kCos1);
  const Number t1 = scaled(d1, kSin1) + scaled(d2, kSin2);
  const Number t2 = scaled(d1, kSin2) - scaled(d2, kSin1);
  a[0] = a[0] + s1 + s2;
  a[1] = m1 + t1;
  a[2] = m2 + t2;
  a[3] = m2 - t2;
  a[4] = m1 - t1;
}

inline void butterfly8(Number* a) {
  constexpr float kHalf = 0.707106781186547524400844362104849039f;
  Number even[4] = {a[0], a[2], a[4], a[6]};
  Number odd[4] = {a[1], a[3], a[5], a[7]};
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

template <int kRadix>
inline void butterfly(Number* a) {
  if constexpr (kRadix == 2) butterfly2(a);
  if constexpr (kRadix == 3) butterfly3(a);
  if constexpr (kRadix == 4) butterfly4(a);
  if constexpr (kRadix == 5) butterfly5(a);
  if constexpr (kRadix == 8) butterfly8(a);
}

template <int kRadix, bool kTwiddled>
inline void columns(std::int64_t span, std::int64_t in_step, const float* __restrict in_re,
                    const float* __restrict in_im, float* __restrict out_re,
                    float* __restrict out_im, const float* w) {
  IPUJAX_IVDEP
  for (std::int64_t q = 0; q < span; ++q) {
    Number a[kRadix];
    for (int k = 0; k < kRadix; ++k) a[k] = {in_re[q + k * in_step], in_im[q + k * in_step]};
    butterfly<kRadix>(a);
    if constexpr (kTwiddled) {
      for (int j = 1; j < kRadix; ++j) a[j] = a[j] * Number{w[2 * j - 2], w[2 * j - 1]};
    }
    for (int j = 0; j < kRadix; ++j) {
      out_re[q + j * span] = a[j].re;
      out_im[q + j * span] = a[j].im;
    }
  }
}

template <int kRadix>
void pass(const Pass& p, const float* in_re, const float* in_im, float* out_re, float* out_im) {
  const std::int64_t step = p.span * p.m;
  columns<kRadix, false>(p.span, step, in_re, in_im, out_re, out_im, nullptr);
  for (std::int64_t i = 1; i < p.m; ++i) {
    const std::int64_t in = i * p.span;
    const std::int64_t out = in * kRadix;
    columns<kRadix, true>(p.span, step, in_re + in, in_im + in, out_re + out, out_im + out,
                          p.twiddles + (i - 1) * 2 * (kRadix - 1));
  }
}

/// Any odd radix, by sums and differences of elements k and radix - k.
void generalPass(const Pass& p, const float* in_re, const float* in_im, float* out_re,
                 float* out_im) {
  const std::int64_t radix = p.radix;
  const std::int64_t half = (radix - 1) / 2;
  const std::int64_t step = p.span * p.m;
  float sum_re[kLargestRadix][kLanes], sum_im[kLargestRadix][kLanes];
  float dif_re[kLargestRadix][kLanes], dif_im[kLargestRadix][kLanes];
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t q = 0; q < p.span; q += kLanes) {
      const float* re = in_re + i * p.span + q;
      const float* im = in_im + i * p.span + q;
      float* to_re = out_re + i * p.span * radix + q;
      float* to_im = out_im + i * p.span * radix + q;
      float total_re[kLanes], total_im[kLanes];
      for (int b = 0; b < kLanes; ++b) total_re[b] = re[b], total_im[b] = im[b];
      for (std::int64_t k = 1; k <= half; ++k) {
        for (int b = 0; b < kLanes; ++b) {
          const float x = re[k * step + b], y = re[(radix - k) * step + b];
          const float u = im[k * step + b], v = im[(radix - k) * step + b];
          sum_re[k][b] = x + y, dif_re[k][b] = x - y;
          sum_im[k][b] = u + v, dif_im[k][b] = u - v;
          total_re[b] += sum_re[k][b], total_im[b] += sum_im[k][b];
        }
      }
      for (int b = 0; b < kLanes; ++b) to_re[b] = total_re[b], to_im[b] = total_im[b];
      for (std::int64_t j = 1; j <= half; ++j) {
        float m_re[kLanes], m_im[kLanes], t_re[kLanes] = {}, t_im[kLanes] = {};
        for (int b = 0; b < kLanes; ++b) m_re[b] = re[b], m_im[b] = im[b];
        for (std::int64_t k = 1; k <= half; ++k) {
          const std::int64_t at = j * k % radix;
          const float c = p.roots[2 * at], s = p.roots[2 * at + 1];
          for (int b = 0; b < kLanes; ++b) {
            m_re[b] += c * sum_re[k][b], m_im[b] += c * sum_im[k][b];
            t_re[b] += s * dif_im[k][b], t_im[b] -= s * dif_re[k][b];
          }
        }
        const auto put = [&](std::int64_t at, float sign) {
          Number w{1.0f, 0.0f};
          if (i > 0) {
            const float* t = p.twiddles + ((i - 1) * (radix - 1) + at - 1) * 2;
            w = {t[0], t[1]};
          }
          for (int b = 0; b < kLanes; ++b) {
            const Number a = Number{m_re[b] + sign * t_re[b], m_im[b] + sign * t_im[b]} * w;
            to_re[at * p.span + b] = a.re;
            to_im[at * p.span + b] = a.im;
          }
        };
        put(j, 1.0f);
        put(radix - j, -1.0f);
      }
    }
  }
}

void run(const Pass& p, const float* in_re, const float* in_im, float* out_re, float* out_im) {
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

void scale(float* x, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

void multiply(float* __restrict re, float* __restrict im, const float* __restrict w_re,
              const float* __restrict w_im, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Number a = Number{re[i], im[i]} * Number{w_re[i], w_im[i]};
    re[i] = a.re;
    im[i] = a.im;
  }
}

/// z = e + i o of the even and odd halves' transforms; the result is e + w o.
void unpack(const float* __restrict z_re, const float* __restrict z_im, std::int64_t half,
            const float* __restrict w_re, const float* __restrict w_im, float* __restrict out_re,
            float* __restrict out_im) {
  for (std::int64_t k = 1; k < half; ++k) {
    const std::int64_t back = half - k;
    const Number even{0.5f * (z_re[k] + z_re[back]), 0.5f * (z_im[k] - z_im[back])};
    const Number odd{0.5f * (z_im[k] + z_im[back]), 0.5f * (z_re[back] - z_re[k])};
    const Number x = even + odd * Number{w_re[k], w_im[k]};
    out_re[k] = x.re;
    out_im[k] = x.im;
  }
  out_re[0] = z_re[0] + z_im[0];
  out_re[half] = z_re[0] - z_im[0];
  out_im[0] = 0.0f;
  out_im[half] = 0.0f;
}

void pack(const float* __restrict in_re, const float* __restrict in_im, std::int64_t half,
          const float* __restrict w_re, const float* __restrict w_im, float* __restrict z_re,
          float* __restrict z_im) {
  for (std::int64_t k = 1; k < half; ++k) {
    const std::int64_t back = half - k;
    const Number even{0.5f * (in_re[k] + in_re[back]), 0.5f * (in_im[k] - in_im[back])};
    const Number difference{0.5f * (in_re[k] - in_re[back]), 0.5f * (in_im[k] + in_im[back])};
    const Number odd = difference * Number{w_re[k], -w_im[k]};
    z_re[k] = even.re - odd.im;
    z_im[k] = even.im + odd.re;
  }
  const float first = in_re[0];
  const float last = in_re[half];
  z_re[0] = 0.5f * (first + last);
  z_im[0] = 0.5f * (first - last);
}

}  // namespace

extern const PassTable kPassTable;  // a const is local otherwise
const PassTable kPassTable{run, scale, multiply, unpack, pack};

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::fourier
