#include "engine/kernels/CounterBits.hpp"

#include <cmath>

#include "engine/simd/FloatMath.hpp"

namespace ipujax::engine {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

constexpr int kLanes = 16;

inline std::uint32_t rotate(std::uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }

template <int kA, int kB, int kC, int kD>
inline void fourRounds(std::uint32_t* x, std::uint32_t* y) {
  for (int i = 0; i < kLanes; ++i) {
    std::uint32_t a = x[i];
    std::uint32_t b = y[i];
    a += b, b = a ^ rotate(b, kA);
    a += b, b = a ^ rotate(b, kB);
    a += b, b = a ^ rotate(b, kC);
    a += b, b = a ^ rotate(b, kD);
    x[i] = a;
    y[i] = b;
  }
}

inline void addKeys(std::uint32_t* x, std::uint32_t* y, std::uint32_t a, std::uint32_t b) {
  for (int i = 0; i < kLanes; ++i) {
    x[i] += a;
    y[i] += b;
  }
}

inline void threefryLanes(std::uint32_t* x, std::uint32_t* y, const std::uint32_t* key) {
  addKeys(x, y, key[0], key[1]);
  for (std::uint32_t group = 1; group <= 5; ++group) {
    if (group % 2 == 1) {
      fourRounds<13, 15, 26, 6>(x, y);
    } else {
      fourRounds<17, 29, 16, 24>(x, y);
    }
    addKeys(x, y, key[group % 3], key[(group + 1) % 3] + group);
  }
}

void threefry(std::uint32_t* first, std::uint32_t* second, std::uint64_t counter, std::int64_t n,
              std::uint32_t key0, std::uint32_t key1) {
  const std::uint32_t key[3] = {key0, key1, key0 ^ key1 ^ 0x1bd11bdau};  // the paper's parity word
  for (std::int64_t at = 0; at < n; at += kLanes) {
    std::uint32_t x[kLanes];
    std::uint32_t y[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const std::uint64_t c = counter + static_cast<std::uint64_t>(at + i);
      x[i] = static_cast<std::uint32_t>(c);
      y[i] = static_cast<std::uint32_t>(c >> 32);
    }
    threefryLanes(x, y, key);
    const int count = n - at < kLanes ? static_cast<int>(n - at) : kLanes;
    for (int i = 0; i < count; ++i) {
      first[at + i] = x[i];
      second[at + i] = y[i];
    }
  }
}

inline void philoxLanes(std::uint32_t (*x)[kLanes], std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      const std::uint64_t a = std::uint64_t{x[0][i]} * 0xd2511f53u;  // the paper's constants
      const std::uint64_t b = std::uint64_t{x[2][i]} * 0xcd9e8d57u;
      x[0][i] = static_cast<std::uint32_t>(b >> 32) ^ x[1][i] ^ key0;
      x[1][i] = static_cast<std::uint32_t>(b);
      x[2][i] = static_cast<std::uint32_t>(a >> 32) ^ x[3][i] ^ key1;
      x[3][i] = static_cast<std::uint32_t>(a);
    }
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
}

/// low(i), high(i): the counter of number i.
template <class Low, class High>
inline void philoxBlocks(std::uint32_t* words, std::int64_t n, std::uint32_t key0,
                         std::uint32_t key1, Low low, High high) {
  for (std::int64_t at = 0; at < n; at += kLanes) {
    std::uint32_t x[4][kLanes];
    const int count = n - at < kLanes ? static_cast<int>(n - at) : kLanes;
    for (int i = 0; i < kLanes; ++i) {
      const std::int64_t number = at + (i < count ? i : 0);
      const std::uint64_t c = low(number);
      const std::uint64_t h = high(c);
      x[0][i] = static_cast<std::uint32_t>(c);
      x[1][i] = static_cast<std::uint32_t>(c >> 32);
      x[2][i] = static_cast<std::uint32_t>(h);
      x[3][i] = static_cast<std::uint32_t>(h >> 32);
    }
    philoxLanes(x, key0, key1);
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < 4; ++j) words[4 * (at + i) + j] = x[j][i];
    }
  }
}

void philox(std::uint32_t* words, std::uint64_t low, std::uint64_t high, std::int64_t n,
            std::uint32_t key0, std::uint32_t key1) {
  philoxBlocks(
      words, n, key0, key1, [=](std::int64_t i) { return low + static_cast<std::uint64_t>(i); },
      [=](std::uint64_t c) { return high + (c < low ? 1 : 0); });
}

void philoxAt(std::uint32_t* words, const std::uint64_t* counters, std::uint64_t high,
              std::int64_t n, std::uint32_t key0, std::uint32_t key1) {
  philoxBlocks(
      words, n, key0, key1, [=](std::int64_t i) { return counters[i]; },
      [=](std::uint64_t) { return high; });
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
