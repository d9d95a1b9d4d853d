#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/simd/FloatMath.hpp"

/// Conversions between types. From float to an integer: truncates, saturates, NaN gives 0. Included
/// by *.simd.cpp only.
namespace ipujax::engine::simd {
namespace IPUJAX_ISA_NAMESPACE {

template <class From, class To>
struct Convert {
  __attribute__((always_inline)) To operator()(From x) const {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      // The bounds are exact in float: 0 or minus a power of two, and a power of two.
      constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
      constexpr From kHigh =
          From(2) * static_cast<From>(static_cast<To>(std::numeric_limits<To>::max() / 2 + 1));
      return x != x       ? To(0)
             : x <= kLow  ? std::numeric_limits<To>::min()
             : x >= kHigh ? std::numeric_limits<To>::max()
                          : static_cast<To>(x);
    } else {
      return static_cast<To>(x);
    }
  }
};
template <class From>
struct ToBool {
  __attribute__((always_inline)) std::uint8_t operator()(From x) const { return x != From(0); }
};

}  // namespace IPUJAX_ISA_NAMESPACE
}  // namespace ipujax::engine::simd
