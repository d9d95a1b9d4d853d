#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "poplar/StringRef.hpp"

namespace poplar {

/// A value of a profile: a boolean, number, string, list or map, nested as in JSON.
class ProfileValue {
 public:
  enum class Type { BOOL, NUMBER, STRING, VECTOR, MAP, NULL_VALUE, BOOL_ = BOOL };
  using Boolean = bool;
  using Number = double;
  using String = std::string;
  using Vector = std::vector<ProfileValue>;
  using Map = std::map<std::string, ProfileValue>;

  ProfileValue() = default;
  ProfileValue(bool value) : type_(Type::BOOL), number_(value) {}  // NOLINT: as in the SDK
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>>>
  ProfileValue(T value) : type_(Type::NUMBER), number_(static_cast<Number>(value)) {}  // NOLINT
  ProfileValue(const char* value) : ProfileValue(String(value)) {}                     // NOLINT
  ProfileValue(StringRef value) : ProfileValue(value.cloneAsString()) {}               // NOLINT
  ProfileValue(String value) : type_(Type::STRING), text_(std::move(value)) {}         // NOLINT
  ProfileValue(Vector value) : type_(Type::VECTOR), list_(std::move(value)) {}         // NOLINT
  ProfileValue(Map value) : type_(Type::MAP), map_(std::move(value)) {}                // NOLINT
  static const ProfileValue& null();

  Type type() const { return type_; }
  bool isNull() const { return type() == Type::NULL_VALUE; }
  /// These throw type_error if the value has another type.
  bool asBool() const;
  double asDouble() const;
  int asInt() const { return static_cast<int>(asDouble()); }
  unsigned asUint() const { return static_cast<unsigned>(asDouble()); }
  const String& asString() const;
  const Vector& asVector() const;
  const Map& asMap() const;

  /// The numbers of a list, or their sum; sum2D* sum a list of lists. Throw type_error if an entry
  /// has another type.
  std::vector<unsigned> toUintVector() const;
  double sumDouble() const;
  int sumInt() const { return static_cast<int>(sumDouble()); }
  unsigned sumUint() const { return static_cast<unsigned>(sumDouble()); }
  std::int64_t sum2DInt() const;
  std::uint64_t sum2DUint() const { return static_cast<std::uint64_t>(sum2DInt()); }

  /// Number of entries of a list or map; 0 for other types.
  std::size_t size() const;
  /// Returns an entry; throws index_error if there is none.
  template <class Index, class = std::enable_if_t<std::is_integral_v<Index>>>
  const ProfileValue& operator[](Index i) const {
    return at(static_cast<std::size_t>(i));
  }
  const ProfileValue& operator[](const std::string& key) const;
  const ProfileValue& operator[](const char* key) const { return (*this)[std::string(key)]; }
  /// An entry of a map, or null().
  const ProfileValue& getOrNull(const std::string& key) const;

  friend bool operator==(const ProfileValue& a, const ProfileValue& b) {
    return a.type_ == b.type_ && a.number_ == b.number_ && a.text_ == b.text_ &&
           a.list_ == b.list_ && a.map_ == b.map_;
  }
  friend bool operator!=(const ProfileValue& a, const ProfileValue& b) { return !(a == b); }

 private:
  const ProfileValue& at(std::size_t i) const;

  Type type_ = Type::NULL_VALUE;
  Number number_ = 0;  // or a boolean
  String text_;
  Vector list_;
  Map map_;
};

/// Writes JSON; with `prettyPrint` one entry on each line.
void serializeToJSON(std::ostream& out, const ProfileValue& value, bool prettyPrint = false);
/// Writes CBOR (RFC 8949); numbers without a fraction as integers.
void serializeToCBOR(std::ostream& out, const ProfileValue& value);
/// Writes JSON on one line.
std::ostream& operator<<(std::ostream& out, const ProfileValue& value);

}  // namespace poplar
