#pragma once
#include <ostream>
#include <string>

#include "engine/ElementType.hpp"

namespace poplar {

/// The element type of a tensor. The named constants below are the only values in use.
class Type {
 public:
  constexpr Type() = default;
  constexpr explicit Type(ipujax::engine::ElementType element) : element_(element) {}

  std::string toString() const { return nameOf(element_); }
  /// The model's name for it; not part of the SDK's API.
  constexpr ipujax::engine::ElementType element() const { return element_; }

  friend constexpr bool operator==(Type a, Type b) { return a.element_ == b.element_; }
  friend constexpr bool operator!=(Type a, Type b) { return !(a == b); }
  friend constexpr bool operator<(Type a, Type b) { return a.element_ < b.element_; }

 private:
  ipujax::engine::ElementType element_ = ipujax::engine::ElementType::kFloat;
};

inline std::ostream& operator<<(std::ostream& os, Type type) { return os << type.toString(); }

inline constexpr Type BOOL{ipujax::engine::ElementType::kBool};
inline constexpr Type CHAR{ipujax::engine::ElementType::kInt8};
inline constexpr Type SIGNED_CHAR{ipujax::engine::ElementType::kInt8};
inline constexpr Type UNSIGNED_CHAR{ipujax::engine::ElementType::kUInt8};
inline constexpr Type SHORT{ipujax::engine::ElementType::kInt16};
inline constexpr Type UNSIGNED_SHORT{ipujax::engine::ElementType::kUInt16};
inline constexpr Type INT{ipujax::engine::ElementType::kInt32};
inline constexpr Type UNSIGNED_INT{ipujax::engine::ElementType::kUInt32};
inline constexpr Type LONGLONG{ipujax::engine::ElementType::kInt64};
inline constexpr Type UNSIGNED_LONGLONG{ipujax::engine::ElementType::kUInt64};
inline constexpr Type HALF{ipujax::engine::ElementType::kHalf};
inline constexpr Type FLOAT{ipujax::engine::ElementType::kFloat};

/// The Type of a host C++ type; specialised for those a constant can be given in.
template <class T>
struct equivalent_device_type;
#define IPUJAX_DEVICE_TYPE(host, device)  \
  template <>                             \
  struct equivalent_device_type<host> {   \
    static constexpr Type value = device; \
  }
IPUJAX_DEVICE_TYPE(bool, BOOL);
IPUJAX_DEVICE_TYPE(char, CHAR);
IPUJAX_DEVICE_TYPE(signed char, SIGNED_CHAR);
IPUJAX_DEVICE_TYPE(unsigned char, UNSIGNED_CHAR);
IPUJAX_DEVICE_TYPE(short, SHORT);
IPUJAX_DEVICE_TYPE(unsigned short, UNSIGNED_SHORT);
IPUJAX_DEVICE_TYPE(int, INT);
IPUJAX_DEVICE_TYPE(unsigned, UNSIGNED_INT);
IPUJAX_DEVICE_TYPE(long, LONGLONG);
IPUJAX_DEVICE_TYPE(unsigned long, UNSIGNED_LONGLONG);
IPUJAX_DEVICE_TYPE(long long, LONGLONG);
IPUJAX_DEVICE_TYPE(unsigned long long, UNSIGNED_LONGLONG);
IPUJAX_DEVICE_TYPE(float, FLOAT);
#undef IPUJAX_DEVICE_TYPE

}  // namespace poplar
