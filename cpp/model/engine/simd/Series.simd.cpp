#include "engine/simd/Series.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include "engine/simd/FloatMath.hpp"
#include "engine/simd/Registers.hpp"
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

constexpr int kBytes = kRegisterBytes;
using Float = float __attribute__((vector_size(kBytes)));
using UInt = std::uint32_t __attribute__((vector_size(kBytes)));

IPUJAX_INLINE Float load(const std::byte* from) {
  Float v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

/// The number at `from` in all lanes.
IPUJAX_INLINE Float everywhere(const void* from) {
  std::uint32_t bits;  // as integers: adding -0.0 to zeros would lose the sign
  __builtin_memcpy(&bits, from, 4);
  return (Float)(UInt{} + bits);
}

/// v + sign * y, rounded once.
IPUJAX_INLINE Float sum(Float v, Float sign, Float y) {
#if defined(__AVX512F__)
  return (Float)_mm512_fmadd_ps((__m512)sign, (__m512)y, (__m512)v);
#elif defined(__FMA__)
  return (Float)_mm256_fmadd_ps((__m256)sign, (__m256)y, (__m256)v);
#else
  return v + sign * y;  // the product is exact
#endif
}

constexpr bool isScalar(unsigned kind) {
  return kind == Series::kSumOfScalar || kind == Series::kProductOfScalar;
}

/// The operations' operands during a loop.
struct Operands {
  const std::byte* memory[Series::kMost];
  Float scalars[Series::kMost];
  Float signs[Series::kMost];

  template <unsigned kKind>
  IPUJAX_FN void bind(std::size_t i, const Series& series, const ChainMemory& at) {
    memory[i] = at.at[series.operands[i]];
    if constexpr (isScalar(kKind)) scalars[i] = everywhere(memory[i]);
    signs[i] = everywhere(&series.signs[i]);
  }
  /// Applies operation i to v, which is at `offset` bytes from the first element.
  template <unsigned kKind>
  IPUJAX_FN Float applied(Float v, std::size_t i, std::int64_t offset) const {
    Float y;
    if constexpr (isScalar(kKind))
      y = scalars[i];
    else
      y = load(memory[i] + offset);
    if constexpr (kKind == Series::kProduct || kKind == Series::kProductOfScalar)
      return v * y;
    else
      return sum(v, signs[i], y);
  }
};

constexpr unsigned kindOf(std::size_t kinds, std::size_t i) {
  for (; i > 0; --i) kinds /= Series::kNumKinds;
  return kinds % Series::kNumKinds;
}

/// Applies operations of `kKinds` to as many vectors as kVector has, at `offset` bytes.
template <std::size_t kKinds, std::size_t... kOperation, int... kVector>
IPUJAX_INLINE void strip(const Operands& operands, const std::byte* from, std::byte* to,
                         std::int64_t offset, std::index_sequence<kOperation...>,
                         std::integer_sequence<int, kVector...>) {
  Float v[] = {load(from + offset + kVector * kBytes)...};
  const auto apply = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) IPUJAX_FN {
    ((v[kVector] = operands.applied<kindOf(kKinds, i)>(v[kVector], i, offset + kVector * kBytes)),
     ...);
  };
  (apply(std::integral_constant<std::size_t, kOperation>{}), ...);
  (__builtin_memcpy(to + offset + kVector * kBytes, &v[kVector], kBytes), ...);
}

template <std::size_t kKinds, std::size_t... kOperation>
IPUJAX_INLINE Operands bound(const Series& series, const ChainMemory& memory,
                             std::index_sequence<kOperation...>) {
  Operands operands;
  (operands.bind<kindOf(kKinds, kOperation)>(kOperation, series, memory), ...);
  return operands;
}

template <std::size_t kLength, std::size_t kKinds>
void run(const Series& series, const ChainMemory& memory, std::int64_t n) {
  using Operations = std::make_index_sequence<kLength>;
  constexpr int kAtOnce = 4;
  const Operands operands = bound<kKinds>(series, memory, Operations{});
  const std::byte* from = memory.at[series.from];
  std::byte* to = memory.at[series.to];
  const std::int64_t end = n * 4;
  std::int64_t offset = 0;
  for (; offset + kAtOnce * kBytes <= end; offset += kAtOnce * kBytes)
    strip<kKinds>(operands, from, to, offset, Operations{},
                  std::make_integer_sequence<int, kAtOnce>{});
  for (; offset < end; offset += kBytes)
    strip<kKinds>(operands, from, to, offset, Operations{}, std::integer_sequence<int, 0>{});
}

using Loop = void (*)(const Series&, const ChainMemory&, std::int64_t);

constexpr std::size_t lengthOf(std::size_t code) {
  std::size_t length = Series::kFewest;
  while (code >= Series::codeOf(length + 1, 0)) ++length;
  return length;
}
template <std::size_t... kCode>
constexpr auto allLoops(std::index_sequence<kCode...>) {
  return std::array<Loop, sizeof...(kCode)>{
      run<lengthOf(kCode), kCode - Series::codeOf(lengthOf(kCode), 0)>...};
}
constexpr auto kLoops = allLoops(std::make_index_sequence<kNumSeries>{});

}  // namespace

void runSeries(const Series& series, ChainMemory& memory, std::span<const std::uint8_t> steps,
               std::int64_t n) {
  if (n > 0) kLoops[series.code](series, memory, n);
  for (std::size_t k = 0; k < steps.size(); ++k) memory.at[k] += steps[k] * n;
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
