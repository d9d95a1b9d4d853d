#pragma once
#include <cstdint>
#include <functional>
#include <memory>  // programs written for the SDK get it from here
#include <ostream>
#include <string>
#include <type_traits>

#include "engine/ElementType.hpp"

namespace poplar {

/// Throws poplar_error: the model has no arithmetic on quarters.
[[noreturn]] void refuseQuarter();

/// The element type of a tensor. The named constants below are the only values in use; they are
/// not const because programs written for the SDK bind them to `Type&`.
class Type {
 public:
  constexpr Type() = default;
  constexpr explicit Type(ipujax::engine::ElementType element) : element_(element) {}

  /// 8-bit floats, whose format and scale are in a metadata tensor; and the type of that metadata.
  /// The engine stores both as bytes, and has no arithmetic for them: popops::cast converts.
  static constexpr Type quarter() { return Type(Bytes::kQuarter); }
  static constexpr Type quarterMetadata() { return Type(Bytes::kMetadata); }

  std::string toString() const {
    if (isPlain()) return nameOf(element_);
    return bytes_ == Bytes::kQuarter ? "quarter" : "quarter_metadata";
  }
  constexpr bool requiresMetadata() const { return bytes_ == Bytes::kQuarter; }
  constexpr bool isFloatingPoint() const {
    return requiresMetadata() || element_ >= ipujax::engine::ElementType::kHalf;
  }
  constexpr bool isIntegral() const {
    return isPlain() && !isFloatingPoint() && element_ != ipujax::engine::ElementType::kBool;
  }
  constexpr std::size_t hash() const {
    return 31 * static_cast<std::size_t>(bytes_) + static_cast<std::size_t>(element_);
  }
  /// For the library: the engine's type; throws poplar_error for quarters and metadata.
  constexpr ipujax::engine::ElementType element() const {
    if (!isPlain()) refuseQuarter();
    return element_;
  }
  /// For the library: the type stored in memory.
  constexpr ipujax::engine::ElementType storage() const { return element_; }
  constexpr bool isPlain() const { return bytes_ == Bytes::kPlain; }

  friend constexpr bool operator==(Type a, Type b) {
    return a.element_ == b.element_ && a.bytes_ == b.bytes_;
  }
  friend constexpr bool operator!=(Type a, Type b) { return !(a == b); }
  friend constexpr bool operator<(Type a, Type b) {
    return a.bytes_ != b.bytes_ ? a.bytes_ < b.bytes_ : a.element_ < b.element_;
  }

 private:
  ipujax::engine::ElementType element_ = ipujax::engine::ElementType::kFloat;
  enum class Bytes : std::uint8_t { kPlain, kQuarter, kMetadata };
  constexpr explicit Type(Bytes bytes)
      : element_(ipujax::engine::ElementType::kUInt8), bytes_(bytes) {}
  Bytes bytes_ = Bytes::kPlain;
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
inline Type QUARTER_METADATA = Type::quarterMetadata();

/// The Type of a host C++ type; specialised for the types of constants.
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

/// The type of host C++ values in memory; double exists only on the host.
template <class T>
constexpr Type hostType() {
  if constexpr (std::is_same_v<T, double>)
    return Type(ipujax::engine::ElementType::kDouble);
  else
    return equivalent_device_type<T>::value;
}

}  // namespace poplar

template <>
struct std::hash<poplar::Type> {
  std::size_t operator()(const poplar::Type& type) const { return type.hash(); }
};
