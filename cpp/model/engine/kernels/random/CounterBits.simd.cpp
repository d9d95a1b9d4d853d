#include "engine/kernels/random/CounterBits.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "engine/simd/FloatMath.hpp"
#include "engine/simd/Registers.hpp"
#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace ipujax::engine {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

constexpr int kBytes = simd::IPUJAX_ISA_NAMESPACE::kRegisterBytes;
constexpr int kLanes = kBytes / 4;
using Words = std::uint32_t __attribute__((vector_size(kBytes)));
using Products = std::uint64_t __attribute__((vector_size(kBytes)));
/// Vectors at a time: each depends only on its own previous result.
constexpr int kVectors = 4;
constexpr int kCounters = kVectors * kLanes;

IPUJAX_INLINE Words splat(std::uint32_t x) { return Words{} + x; }
IPUJAX_INLINE Words load(const std::uint32_t* from) {
  Words v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

struct Lanes {
  Words numbers{};        ///< 0, 1, 2, ...
  Words evens{}, odds{};  ///< of two vectors, for __builtin_shuffle
  constexpr Lanes() {
    for (int i = 0; i < kLanes; ++i) {
      const auto lane = static_cast<std::uint32_t>(i);
      numbers[i] = lane;
      evens[i] = i % 2 == 0 ? lane : lane - 1 + kLanes;
      odds[i] = i % 2 == 0 ? lane + 1 : lane + kLanes;
    }
  }
};

/// Vectors of the low and high words of counters.
struct Counters {
  Counters(Words low, Words high) : low(low), high(high) {}
  /// Vector number `vector` of consecutive counters.
  Counters(std::uint64_t first, int vector) {
    const Words begin = splat(static_cast<std::uint32_t>(first));
    low = begin + Lanes().numbers + static_cast<std::uint32_t>(vector * kLanes);
    high = splat(static_cast<std::uint32_t>(first >> 32)) - (Words)(low < begin);
  }
  Words low, high;
};

IPUJAX_INLINE Words rotate(Words x, int by) { return (x << by) | (x >> (32 - by)); }

template <int kA, int kB, int kC, int kD>
IPUJAX_INLINE void fourRounds(Words& a, Words& b) {
  a += b, b = a ^ rotate(b, kA);
  a += b, b = a ^ rotate(b, kB);
  a += b, b = a ^ rotate(b, kC);
  a += b, b = a ^ rotate(b, kD);
}

IPUJAX_INLINE void threefryWords(Words* x, Words* y, const std::uint32_t* key) {
  const auto add_keys = [&](std::uint32_t a, std::uint32_t b) {
    for (int v = 0; v < kVectors; ++v) x[v] += a, y[v] += b;
  };
  add_keys(key[0], key[1]);
#pragma GCC unroll 5
  for (std::uint32_t group = 1; group <= 5; ++group) {
    for (int v = 0; v < kVectors; ++v) {
      if (group % 2 == 1)
        fourRounds<13, 15, 26, 6>(x[v], y[v]);
      else
        fourRounds<17, 29, 16, 24>(x[v], y[v]);
    }
    add_keys(key[group % 3], key[(group + 1) % 3] + group);
  }
}

void threefry(std::uint32_t* first, std::uint32_t* second, std::uint64_t counter, std::int64_t n,
              std::uint32_t key0, std::uint32_t key1) {
  const std::uint32_t key[3] = {key0, key1, key0 ^ key1 ^ 0x1bd11bdau};  // the paper's parity word
  for (std::int64_t at = 0; at < n; at += kCounters) {
    Words x[kVectors];
    Words y[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const Counters counters(counter + static_cast<std::uint64_t>(at), v);
      x[v] = counters.low;
      y[v] = counters.high;
    }
    threefryWords(x, y, key);
    const auto bytes = static_cast<std::size_t>(std::min<std::int64_t>(n - at, kCounters)) * 4;
    std::memcpy(first + at, x, bytes);
    std::memcpy(second + at, y, bytes);
  }
}

/// a[i] * b[i] of the even lanes.
IPUJAX_INLINE Products evenProducts(Words a, Words b) {
#if defined(__AVX512F__)
  return (Products)_mm512_maskz_mul_epu32(0xff, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (Products)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (Products)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return ((Products)a & 0xffffffffu) * ((Products)b & 0xffffffffu);
#endif
}

/// The two words of each product x[i] * factor.
struct WideProduct {
  __attribute__((always_inline)) WideProduct(Words x, std::uint32_t factor) {
    const auto even = (Words)evenProducts(x, splat(factor));
    const auto odd = (Words)evenProducts((Words)((Products)x >> 32), splat(factor));
    low = __builtin_shuffle(even, odd, Lanes().evens);
    high = __builtin_shuffle(even, odd, Lanes().odds);
  }
  Words low, high;
};

IPUJAX_INLINE void philoxWords(Words (*x)[kVectors], std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    for (int v = 0; v < kVectors; ++v) {
      const WideProduct a(x[0][v], 0xd2511f53u);  // the paper's constants
      const WideProduct b(x[2][v], 0xcd9e8d57u);
      x[0][v] = b.high ^ x[1][v] ^ key0;
      x[1][v] = b.low;
      x[2][v] = a.high ^ x[3][v] ^ key1;
      x[3][v] = a.low;
    }
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
}

/// Stores the four words of each counter one after the other.
IPUJAX_INLINE void storeByCounter(const Words (*x)[kVectors], std::uint32_t* words) {
  using Four = std::uint32_t __attribute__((vector_size(16)));
  const auto* from = reinterpret_cast<const std::byte*>(x);
  for (int at = 0; at < kCounters; at += 4) {
    Four row[4];
    for (int j = 0; j < 4; ++j)
      std::memcpy(&row[j], from + (j * kCounters + at) * 4, sizeof row[j]);
    const Four low = __builtin_shuffle(row[0], row[1], Four{0, 4, 1, 5});
    const Four low2 = __builtin_shuffle(row[2], row[3], Four{0, 4, 1, 5});
    const Four high = __builtin_shuffle(row[0], row[1], Four{2, 6, 3, 7});
    const Four high2 = __builtin_shuffle(row[2], row[3], Four{2, 6, 3, 7});
    const Four columns[4] = {__builtin_shuffle(low, low2, Four{0, 1, 4, 5}),
                             __builtin_shuffle(low, low2, Four{2, 3, 6, 7}),
                             __builtin_shuffle(high, high2, Four{0, 1, 4, 5}),
                             __builtin_shuffle(high, high2, Four{2, 3, 6, 7})};
    std::memcpy(words + 4 * at, columns, sizeof columns);
  }
}

/// counters(at, v): vector v of the low halves of the counters from number `at` on.
template <class CountersAt>
IPUJAX_INLINE void philoxBlocks(std::uint32_t* words, std::uint64_t high, std::int64_t n,
                                std::uint32_t key0, std::uint32_t key1, CountersAt counters) {
  for (std::int64_t at = 0; at < n; at += kCounters) {
    Words x[4][kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const Counters low = counters(at, v);
      x[0][v] = low.low;
      x[1][v] = low.high;
      x[2][v] = splat(static_cast<std::uint32_t>(high));
      x[3][v] = splat(static_cast<std::uint32_t>(high >> 32));
    }
    philoxWords(x, key0, key1);
    if (n - at >= kCounters) {
      storeByCounter(x, words + 4 * at);
    } else {
      std::uint32_t last[4 * kCounters];
      storeByCounter(x, last);
      std::memcpy(words + 4 * at, last, static_cast<std::size_t>(n - at) * 16);
    }
  }
}

void philox(std::uint32_t* words, std::uint64_t low, std::uint64_t high, std::int64_t n,
            std::uint32_t key0, std::uint32_t key1) {
  const std::uint64_t left = ~low;  // counters after the first of this high half
  const std::int64_t here =
      left < static_cast<std::uint64_t>(n) ? static_cast<std::int64_t>(left) + 1 : n;
  const auto run = [&](std::uint32_t* to, std::uint64_t from, std::uint64_t half,
                       std::int64_t count) {
    philoxBlocks(to, half, count, key0, key1, [=](std::int64_t at, int vector) {
      return Counters(from + static_cast<std::uint64_t>(at), vector);
    });
  };
  run(words, low, high, std::min(here, n));
  if (here < n) run(words + 4 * here, 0, high + 1, n - here);
}

void philoxAt(std::uint32_t* words, const std::uint64_t* counters, std::uint64_t high,
              std::int64_t n, std::uint32_t key0, std::uint32_t key1) {
  philoxBlocks(words, high, n, key0, key1, [=](std::int64_t at, int vector) {
    std::uint32_t low[kLanes] = {};
    std::uint32_t upper[kLanes] = {};
    const std::int64_t begin = at + vector * kLanes;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(kLanes, n - begin); ++i) {
      low[i] = static_cast<std::uint32_t>(counters[begin + i]);
      upper[i] = static_cast<std::uint32_t>(counters[begin + i] >> 32);
    }
    return Counters(load(low), load(upper));
  });
}

void normals(const std::uint32_t* words, float* out, std::int64_t pairs) {
  namespace math = simd::IPUJAX_ISA_NAMESPACE;
  for (std::int64_t k = 0; k < pairs; ++k) {
    const double u = (words[2 * k] + 1.0) * 0x1p-32;  // (0, 1]
    const auto radius = static_cast<float>(std::sqrt(-2 * math::logDouble(u)));
    const float angle = static_cast<float>(words[2 * k + 1] * (2 * 3.14159265358979324 * 0x1p-32));
    out[2 * k] = radius * math::sinShifted(angle, 1);
    out[2 * k + 1] = radius * math::sinShifted(angle, 0);
  }
}

}  // namespace

extern const CounterBits kCounterBits;
const CounterBits kCounterBits = {threefry, philox, philoxAt, normals};

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine
