#pragma once
#include <cstddef>
#include <type_traits>
#include <vector>

#include "poplar/Type.hpp"

namespace poplar {

/// Describes the host values that a pointer points to.
struct TypeTraits {
  Type type;  ///< of the host values
  std::size_t size = 0;
  std::size_t align = 0;
  bool isIntegral = false;
  bool isFloat = false;
  bool isSigned = false;

  template <class T>
  static TypeTraits make() {
    return {hostType<T>(),
            sizeof(T),
            alignof(T),
            std::is_integral_v<T>,
            std::is_floating_point_v<T>,
            std::is_signed_v<T>};
  }
  template <class T>
  static constexpr bool isSimpleType() {
    return std::is_arithmetic_v<T>;
  }

  bool isSimpleType() const { return isIntegral || isFloat; }
  /// Host types are never quarters; convertToDeviceType makes those.
  template <class T>
  static constexpr bool requiresMetadata() {
    return false;
  }

  /// For the library: a copy of host values.
  struct Values {
    Type type;
    std::size_t count = 0;
    std::vector<unsigned char> bytes;

    Values() = default;
    template <class T>
    Values(const T* values, std::size_t n)
        : type(hostType<T>()),
          count(n),
          bytes(reinterpret_cast<const unsigned char*>(values),
                reinterpret_cast<const unsigned char*>(values + n)) {}
  };
};

}  // namespace poplar
