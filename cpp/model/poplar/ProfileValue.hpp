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

/// A value of a profile: a truth value, a number, a text, a list or a map by name, nested as in
/// JSON.
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
  /// Of a value of another type these throw type_error.
  bool asBool() const;
  double asDouble() const;
  int asInt() const { return static_cast<int>(asDouble()); }
  unsigned asUint() const { return static_cast<unsigned>(asDouble()); }
  const String& asString() const;
  const Vector& asVector() const;
  const Map& asMap() const;

  /// A list's numbers, and the sums of them; the second two of a list of lists. Throw type_error
  /// where an entry is something else.
  std::vector<unsigned> toUintVector() const;
  double sumDouble() const;
  int sumInt() const { return static_cast<int>(sumDouble()); }
  unsigned sumUint() const { return static_cast<unsigned>(sumDouble()); }
  std::int64_t sum2DInt() const;
  std::uint64_t sum2DUint() const { return static_cast<std::uint64_t>(sum2DInt()); }

  /// Of a list or map; 0 of anything else.
  std::size_t size() const;
  /// An entry; throws index_error where there is none.
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
  Number number_ = 0;  // or a truth value
  String text_;
  Vector list_;
  Map map_;
};

/// Writes JSON; with `prettyPrint` one entry on each line.
void serializeToJSON(std::ostream& out, const ProfileValue& value, bool prettyPrint = false);
/// Writes CBOR (RFC 8949); numbers without a fraction as integers.
void serializeToCBOR(std::ostream& out, const ProfileValue& value);
/// The same as JSON on one line.
std::ostream& operator<<(std::ostream& out, const ProfileValue& value);

}  // namespace poplar
