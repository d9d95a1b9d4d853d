#pragma once
#include "poplar/HalfFloat.hpp"
#include "poplar/TypeTraits.hpp"

namespace poplar {

/// A half of the host: a HALF tensor's element as the device holds it.
using IeeeHalf = half_storage;

template <>
struct equivalent_device_type<half_storage> {
  static constexpr Type value{ipujax::engine::ElementType::kHalf};
};
template <>
inline TypeTraits TypeTraits::make<half_storage>() {
  return {HALF, sizeof(half_storage), alignof(half_storage), false, true, true};
}
template <>
constexpr bool TypeTraits::isSimpleType<half_storage>() {
  return true;
}

}  // namespace poplar
