#pragma once
#include <ostream>
#include <string>
#include <type_traits>

#include "engine/ElementType.hpp"

namespace poplar {

/// Throws poplar_error: no tensor of the model has quarters.
[[noreturn]] void refuseQuarter();

/// The element type of a tensor. The named constants below are the only values in use; they are
/// not const because programs written for the SDK bind them to `Type&`.
class Type {
 public:
  constexpr Type() = default;
  constexpr explicit Type(ipujax::engine::ElementType element) : element_(element) {}

  /// Floats of 8 bits, which host conversions know and no tensor has.
  static constexpr Type quarter() {
    Type type(ipujax::engine::ElementType::kUInt8);
    type.quarter_ = true;
    return type;
  }

  std::string toString() const { return quarter_ ? "quarter" : nameOf(element_); }
  constexpr bool requiresMetadata() const { return quarter_; }
  constexpr bool isFloatingPoint() const {
    return quarter_ || element_ >= ipujax::engine::ElementType::kHalf;
  }
  constexpr bool isIntegral() const {
    return !isFloatingPoint() && element_ != ipujax::engine::ElementType::kBool;
  }
  /// The model's name for it; not part of the SDK's API.
  constexpr ipujax::engine::ElementType element() const {
    if (quarter_) refuseQuarter();
    return element_;
  }

  friend constexpr bool operator==(Type a, Type b) {
    return a.element_ == b.element_ && a.quarter_ == b.quarter_;
  }
  friend constexpr bool operator!=(Type a, Type b) { return !(a == b); }
  friend constexpr bool operator<(Type a, Type b) {
    return a.quarter_ != b.quarter_ ? b.quarter_ : a.element_ < b.element_;
  }

 private:
  ipujax::engine::ElementType element_ = ipujax::engine::ElementType::kFloat;
  bool quarter_ = false;
};

inline std::ostream& operator<<(std::ostream& os, Type type) { return os << type.toString(); }

inline Type BOOL{ipujax::engine::ElementType::kBool};
inline Type CHAR{ipujax::engine::ElementType::kInt8};
inline Type SIGNED_CHAR{ipujax::engine::ElementType::kInt8};
inline Type UNSIGNED_CHAR{ipujax::engine::ElementType::kUInt8};
inline Type SHORT{ipujax::engine::ElementType::kInt16};
inline Type UNSIGNED_SHORT{ipujax::engine::ElementType::kUInt16};
inline Type INT{ipujax::engine::ElementType::kInt32};
inline Type UNSIGNED_INT{ipujax::engine::ElementType::kUInt32};
inline Type LONG{ipujax::engine::ElementType::kInt32};  ///< 32 bits on an IPU
inline Type UNSIGNED_LONG{ipujax::engine::ElementType::kUInt32};
inline Type LONGLONG{ipujax::engine::ElementType::kInt64};
inline Type UNSIGNED_LONGLONG{ipujax::engine::ElementType::kUInt64};
inline Type HALF{ipujax::engine::ElementType::kHalf};
inline Type FLOAT{ipujax::engine::ElementType::kFloat};

inline Type QUARTER = Type::quarter();

/// The Type of a host C++ type; specialised for those a constant can be given in.
template <class T>
struct equivalent_device_type;
#define IPUJAX_DEVICE_TYPE(host, kind)                              \
  template <>                                                       \
  struct equivalent_device_type<host> {                             \
    static constexpr Type value{ipujax::engine::ElementType::kind}; \
  }
IPUJAX_DEVICE_TYPE(bool, kBool);
IPUJAX_DEVICE_TYPE(char, kInt8);
IPUJAX_DEVICE_TYPE(signed char, kInt8);
IPUJAX_DEVICE_TYPE(unsigned char, kUInt8);
IPUJAX_DEVICE_TYPE(short, kInt16);
IPUJAX_DEVICE_TYPE(unsigned short, kUInt16);
IPUJAX_DEVICE_TYPE(int, kInt32);
IPUJAX_DEVICE_TYPE(unsigned, kUInt32);
IPUJAX_DEVICE_TYPE(long, kInt64);
IPUJAX_DEVICE_TYPE(unsigned long, kUInt64);
IPUJAX_DEVICE_TYPE(long long, kInt64);
IPUJAX_DEVICE_TYPE(unsigned long long, kUInt64);
IPUJAX_DEVICE_TYPE(float, kFloat);
#undef IPUJAX_DEVICE_TYPE

/// How the values of a host C++ type lie in memory; a double is a host type only.
template <class T>
constexpr Type hostType() {
  if constexpr (std::is_same_v<T, double>)
    return Type(ipujax::engine::ElementType::kDouble);
  else
    return equivalent_device_type<T>::value;
}

}  // namespace poplar
