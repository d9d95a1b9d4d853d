#include <cmath>
#include <cstring>
#include <type_traits>
#ifdef __F16C__
#include <immintrin.h>
#else
#include "engine/Half.hpp"
#endif

#include "engine/kernels/CopyCombine.hpp"

namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {
namespace {

struct Half {
  std::uint16_t bits;
};

template <class T>
struct Compute {
  using Type = T;
};
template <>
struct Compute<Half> {
  using Type = float;
};

template <class T>
inline typename Compute<T>::Type load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  if constexpr (std::is_same_v<T, Half>) {
#ifdef __F16C__
    return _cvtsh_ss(value.bits);
#else
    return halfToFloat(value.bits);
#endif
  } else {
    return value;
  }
}

template <class T>
inline void store(std::byte* p, typename Compute<T>::Type value) {
  if constexpr (std::is_same_v<T, Half>) {
#ifdef __F16C__
    const Half half{static_cast<std::uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT))};
#else
    const Half half{floatToHalf(value)};
#endif
    std::memcpy(p, &half, sizeof(half));
  } else {
    std::memcpy(p, &value, sizeof(T));
  }
}

// Integers wrap, as two's complement does; NaN wins in minimum and maximum.
template <Combine kOp, class C>
inline C combine(C a, C b, [[maybe_unused]] double scale) {
  using U = std::conditional_t<std::is_integral_v<C>, std::make_unsigned<C>, std::type_identity<C>>;
  using Wide = std::conditional_t<(sizeof(C) < 4), unsigned, typename U::type>;
  if constexpr (kOp == Combine::kAdd) {
    return static_cast<C>(static_cast<Wide>(a) + static_cast<Wide>(b));
  } else if constexpr (kOp == Combine::kMultiply) {
    return static_cast<C>(static_cast<Wide>(a) * static_cast<Wide>(b));
  } else if constexpr (kOp == Combine::kMinimum) {
    return (a < b || a != a) ? a : b;
  } else if constexpr (kOp == Combine::kMaximum) {
    return (a > b || a != a) ? a : b;
  } else if constexpr (kOp == Combine::kAnd && std::is_integral_v<C>) {
    return static_cast<C>(a & b);
  } else if constexpr (kOp == Combine::kOr && std::is_integral_v<C>) {
    return static_cast<C>(a | b);
  } else if constexpr (kOp == Combine::kScaledAdd) {
    return static_cast<C>(a + static_cast<C>(scale) * b);
  } else {
    return a;
  }
}

template <Combine kOp, class T>
void run(std::byte* dst, const std::byte* src, std::int64_t n, std::int64_t dst_stride,
         std::int64_t src_stride, double scale) {
  constexpr std::int64_t kSize = sizeof(T);
  if (dst_stride == kSize && src_stride == kSize) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::byte* d = dst + i * kSize;
      store<T>(d, combine<kOp>(load<T>(d), load<T>(src + i * kSize), scale));
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i, dst += dst_stride, src += src_stride) {
    store<T>(dst, combine<kOp>(load<T>(dst), load<T>(src), scale));
  }
}

template <Combine kOp, class T>
void elements(std::byte* dst, const std::byte* src, const ElementMove* moves, std::int64_t n,
              double scale) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::byte* d = dst + moves[i].dst;
    store<T>(d, combine<kOp>(load<T>(d), load<T>(src + moves[i].src), scale));
  }
}

template <Combine kOp, class T>
constexpr Combiner kCombiner{run<kOp, T>, elements<kOp, T>};

template <class T>
Combiner find(Combine op) {
  constexpr bool kInteger = std::is_integral_v<T>;
  switch (op) {
    case Combine::kAdd:
      return kCombiner<Combine::kAdd, T>;
    case Combine::kMultiply:
      return kCombiner<Combine::kMultiply, T>;
    case Combine::kMinimum:
      return kCombiner<Combine::kMinimum, T>;
    case Combine::kMaximum:
      return kCombiner<Combine::kMaximum, T>;
    case Combine::kAnd:
      return kInteger ? kCombiner<Combine::kAnd, T> : Combiner{};
    case Combine::kOr:
      return kInteger ? kCombiner<Combine::kOr, T> : Combiner{};
    case Combine::kScaledAdd:
      return kCombiner<Combine::kScaledAdd, T>;
  }
  return {};
}

// Bool is held as 0 or 1: a sum is "or", a product "and".
Combiner findBool(Combine op) {
  switch (op) {
    case Combine::kAdd:
    case Combine::kMaximum:
    case Combine::kOr:
      return kCombiner<Combine::kOr, std::uint8_t>;
    case Combine::kMultiply:
    case Combine::kMinimum:
    case Combine::kAnd:
      return kCombiner<Combine::kAnd, std::uint8_t>;
    case Combine::kScaledAdd:
      break;
  }
  return {};
}

}  // namespace

Combiner findCombine(Combine op, ElementType type);
Combiner findCombine(Combine op, ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return findBool(op);
    case ElementType::kInt8:
      return find<std::int8_t>(op);
    case ElementType::kUInt8:
      return find<std::uint8_t>(op);
    case ElementType::kInt16:
      return find<std::int16_t>(op);
    case ElementType::kUInt16:
      return find<std::uint16_t>(op);
    case ElementType::kInt32:
      return find<std::int32_t>(op);
    case ElementType::kUInt32:
      return find<std::uint32_t>(op);
    case ElementType::kInt64:
      return find<std::int64_t>(op);
    case ElementType::kUInt64:
      return find<std::uint64_t>(op);
    case ElementType::kHalf:
      return find<Half>(op);
    case ElementType::kFloat:
      return find<float>(op);
    case ElementType::kDouble:
      return find<double>(op);
  }
  return {};
}

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
