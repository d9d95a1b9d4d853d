#include "engine/kernels/sequence/Recurrent.hpp"

#include "engine/simd/FloatMath.hpp"
#include "engine/simd/Registers.hpp"

namespace ipujax::engine::recurrent {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

using namespace simd::IPUJAX_ISA_NAMESPACE;

template <Activation kKind>
IPUJAX_INLINE float activated(float x) {
  if constexpr (kKind == Activation::kSigmoid) return sigmoidFloat(x);
  if constexpr (kKind == Activation::kTanh) return tanhFloat(x);
  if constexpr (kKind == Activation::kRelu) return x > 0.0f ? x : (x != x ? x : 0.0f);
  const float line = x * 0.2f + 0.5f;
  const float above = line > 1.0f ? 1.0f : line;
  return above < 0.0f ? 0.0f : above;
}

/// The slope from the activation's result.
template <Activation kKind>
IPUJAX_INLINE float slopeOf(float y) {
  if constexpr (kKind == Activation::kSigmoid) return y * (1.0f - y);
  if constexpr (kKind == Activation::kTanh) return 1.0f - y * y;
  if constexpr (kKind == Activation::kRelu) return y > 0.0f ? 1.0f : 0.0f;
  return (y > 0.0f && y < 1.0f) ? 0.2f : 0.0f;
}

template <Activation kKind>
void activate(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = activated<kKind>(x[i]);
}

template <Activation kKind>
void slope(const float* __restrict result, float* __restrict grad, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) grad[i] *= slopeOf<kKind>(result[i]);
}

template <Activation kKind>
void lstm(const float* __restrict f, const float* __restrict i, const float* __restrict o,
          const float* __restrict g, float* __restrict c, float* __restrict tanh,
          float* __restrict h, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) {
    const float cell = madd(f[k], c[k], i[k] * g[k]);
    const float t = activated<kKind>(cell);
    c[k] = cell;
    tanh[k] = t;
    h[k] = o[k] * t;
  }
}

template <Activation kGate, Activation kAct>
void lstmBack(const LstmBack& r, std::int64_t n) {
  const float* __restrict f = r.forget, * __restrict i = r.input, * __restrict o = r.output, * __restrict g = r.candidate, * __restrict t = r.tanh, * __restrict before = r.before, * __restrict grad = r.grad;
  float* __restrict cell = r.cell, * __restrict zf = r.to_forget, * __restrict zi = r.to_input, * __restrict zo = r.to_output, * __restrict zg = r.to_candidate;
  IPUJAX_IVDEP
  for (std::int64_t k = 0; k < n; ++k) {
    const float c = madd(grad[k] * o[k], slopeOf<kAct>(t[k]), cell[k]);
    zf[k] = c * before[k] * slopeOf<kGate>(f[k]);
    zi[k] = c * g[k] * slopeOf<kGate>(i[k]);
    zo[k] = grad[k] * t[k] * slopeOf<kGate>(o[k]);
    zg[k] = c * i[k] * slopeOf<kAct>(g[k]);
    cell[k] = c * f[k];
  }
}

void gru(const float* __restrict u, const float* __restrict c, float attention, float* __restrict h,
         std::int64_t n) {
  IPUJAX_IVDEP
  for (std::int64_t k = 0; k < n; ++k) {
    const float s = u[k] - u[k] * attention;
    h[k] = s * h[k] + (1.0f - s) * c[k];
  }
}

template <Activation kGate, Activation kAct>
float gruBack(const GruBack& r, std::int64_t n) {
  const float* __restrict u = r.update, * __restrict c = r.candidate, * __restrict h = r.before, * __restrict grad = r.grad, * __restrict memory = r.memory, * __restrict reset = r.reset;
  float* __restrict zu = r.to_update, * __restrict zc = r.to_candidate, * __restrict zr = r.to_reset, * __restrict zm = r.to_memory, * __restrict direct = r.direct;
  const float rest = 1.0f - r.attention;
  IPUJAX_IVDEP
  for (std::int64_t k = 0; k < n; ++k) {
    const float share = u[k] * rest, to_share = grad[k] * (h[k] - c[k]);
    zu[k] = to_share * rest * slopeOf<kGate>(u[k]);
    zc[k] = (grad[k] - grad[k] * share) * slopeOf<kAct>(c[k]);
    direct[k] = grad[k] * share;
  }
  if (memory != nullptr) {
    IPUJAX_IVDEP
    for (std::int64_t k = 0; k < n; ++k) {
      zr[k] = zc[k] * memory[k] * slopeOf<kGate>(reset[k]);
      zm[k] = zc[k] * reset[k];
    }
  }
  if (!r.with_attention) return 0.0f;
  float sum = 0.0f;
  for (std::int64_t k = 0; k < n; ++k) sum += grad[k] * (h[k] - c[k]) * u[k];
  return -sum;
}

/// `out` may be an operand.
void multiply(const float* a, const float* b, float* out, std::int64_t n) {
  IPUJAX_IVDEP
  for (std::int64_t k = 0; k < n; ++k) out[k] = a[k] * b[k];
}
void multiplyAdd(const float* __restrict a, const float* __restrict b, float* __restrict sum,
                 std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) sum[k] += a[k] * b[k];
}

template <Activation kGate, Activation kAct>
void putPair(Loops& table) {
  table.lstmBack[static_cast<int>(kGate)][static_cast<int>(kAct)] = lstmBack<kGate, kAct>;
  table.gruBack[static_cast<int>(kGate)][static_cast<int>(kAct)] = gruBack<kGate, kAct>;
}

template <Activation kKind>
void put(Loops& table) {
  const int at = static_cast<int>(kKind);
  table.activate[at] = activate<kKind>;
  table.slope[at] = slope<kKind>;
  table.lstm[at] = lstm<kKind>;
  putPair<kKind, Activation::kSigmoid>(table);
  putPair<kKind, Activation::kHardSigmoid>(table);
  putPair<kKind, Activation::kRelu>(table);
  putPair<kKind, Activation::kTanh>(table);
}

}  // namespace

Loops recurrentLoops() {
  Loops table{};
  put<Activation::kSigmoid>(table);
  put<Activation::kHardSigmoid>(table);
  put<Activation::kRelu>(table);
  put<Activation::kTanh>(table);
  table.gru = gru;
  table.multiply = multiply;
  table.multiplyAdd = multiplyAdd;
  return table;
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::recurrent
