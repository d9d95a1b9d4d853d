#pragma once
#include "poplar/TypeTraits.hpp"
#include "poplar/codelets/half_storage.h"

namespace poplar {

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
