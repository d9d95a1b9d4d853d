#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace popx {

/// The attributes of a custom op as typed values. A mapping of names to numbers, text and lists in
/// Python arrives as JSON. Needs C++17, and no other header of this library.
///
///     const popx::JsonAttributes given(attributes);
///     const float alpha = given.get<float>("alpha");
///     const auto axes = given.get<std::vector<int>>("axes", {0});
///
/// Throws std::invalid_argument for text that is not a JSON object, for missing names, and for
/// values of another type.
class JsonAttributes {
 public:
  explicit JsonAttributes(const std::string& json) : at_(json.c_str()), end_(at_ + json.size()) {
    skip();
    if (at_ != end_) readObject();
    skip();
    if (at_ != end_) bad("nothing after the object");
    at_ = end_ = nullptr;
  }

  bool has(const std::string& name) const { return values_.count(name) != 0; }

  /// T: bool, a number, std::string, or a std::vector of one of these.
  template <class T>
  T get(const std::string& name) const {
    const auto it = values_.find(name);
    if (it == values_.end())
      throw std::invalid_argument("[attributes] needs '" + name + "'; got none. Pass it.");
    return converted<T>(name, it->second);
  }
  template <class T>
  T get(const std::string& name, T otherwise) const {
    return has(name) ? get<T>(name) : otherwise;
  }

 private:
  enum class Kind { kNumber, kText, kBool, kNull, kList };
  struct Value {
    Kind kind = Kind::kNull;
    std::string text;  ///< of a number as it is written; "true" or "false"
    std::vector<Value> items{};
  };
  template <class T>
  struct ItemOf {};
  template <class T>
  struct ItemOf<std::vector<T>> {
    using type = T;
  };

  [[noreturn]] static void bad(const std::string& needs) {
    throw std::invalid_argument("[attributes] needs JSON, " + needs +
                                "; got another text. Pass a mapping in Python.");
  }
  [[noreturn]] static void mismatch(const std::string& name, const char* needs, const Value& got) {
    const std::string text = got.kind == Kind::kList   ? "a list"
                             : got.kind == Kind::kText ? "the text '" + got.text + "'"
                                                       : got.text;
    throw std::invalid_argument("[attributes] needs " + std::string(needs) + " for '" + name +
                                "'; got " + text + ". Pass another value.");
  }

  template <class T>
  static T converted(const std::string& name, const Value& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (value.kind != Kind::kBool) mismatch(name, "true or false", value);
      return value.text == "true";
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (value.kind != Kind::kText) mismatch(name, "text", value);
      return value.text;
    } else if constexpr (std::is_floating_point_v<T>) {
      if (value.kind != Kind::kNumber) mismatch(name, "a number", value);
      return static_cast<T>(std::strtod(value.text.c_str(), nullptr));
    } else if constexpr (std::is_integral_v<T>) {
      return integer<T>(name, value);
    } else {
      using Item = typename ItemOf<T>::type;
      if (value.kind != Kind::kList) mismatch(name, "a list", value);
      T items;
      for (const Value& item : value.items) items.push_back(converted<Item>(name, item));
      return items;
    }
  }

  template <class T>
  static T integer(const std::string& name, const Value& value) {
    if (value.kind != Kind::kNumber || value.text.find_first_of(".eE") != std::string::npos)
      mismatch(name, "an integer", value);
    errno = 0;
    if constexpr (std::is_unsigned_v<T>) {
      const auto wide = std::strtoull(value.text.c_str(), nullptr, 10);
      if (errno != 0 || value.text[0] == '-' || wide > std::numeric_limits<T>::max())
        mismatch(name, "an integer that the type holds", value);
      return static_cast<T>(wide);
    } else {
      const auto wide = std::strtoll(value.text.c_str(), nullptr, 10);
      if (errno != 0 || wide < std::numeric_limits<T>::min() ||
          wide > std::numeric_limits<T>::max())
        mismatch(name, "an integer that the type holds", value);
      return static_cast<T>(wide);
    }
  }

  void skip() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  void readObject() {
    if (!take('{')) bad("an object");
    if (take('}')) return;
    do {
      skip();
      std::string name = readText();
      if (!take(':')) bad("a colon after a name");
      values_[std::move(name)] = readValue(0);
    } while (take(','));
    if (!take('}')) bad("an object with an end");
  }

  Value readValue(int depth) {
    if (depth > kMostNested) bad("lists that are less nested");
    if (take('[')) {
      Value list{Kind::kList, ""};
      if (take(']')) return list;
      do {
        list.items.push_back(readValue(depth + 1));
      } while (take(','));
      if (!take(']')) bad("a list with an end");
      return list;
    }
    if (at_ != end_ && *at_ == '"') return {Kind::kText, readText()};
    std::string word;
    while (at_ != end_ && std::string(",]} \n\t\r").find(*at_) == std::string::npos) word += *at_++;
    if (word == "true" || word == "false") return {Kind::kBool, word};
    if (word == "null") return {Kind::kNull, word};
    char* end = nullptr;
    if (word.find_first_not_of("0123456789+-.eE") == std::string::npos)
      std::strtod(word.c_str(), &end);
    if (!end || end == word.c_str() || *end != '\0')
      bad("numbers, text, lists, true, false or null as values");
    return {Kind::kNumber, word};
  }

  std::string readText() {
    if (!take('"')) bad("text in quotes");
    std::string text;
    while (at_ != end_ && *at_ != '"') {
      if (*at_ != '\\') {
        text += *at_++;
        continue;
      }
      ++at_;
      if (at_ == end_) break;
      const char c = *at_++;
      const std::string from = "nrtbf", to = "\n\r\t\b\f";
      if (c == 'u') {
        addCharacter(text, readEscaped());
      } else if (const std::size_t i = from.find(c); i != std::string::npos) {
        text += to[i];
      } else {
        text += c;
      }
    }
    if (!take('"')) bad("text with an end");
    return text;
  }

  std::uint32_t readHex() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const std::string digits = "0123456789abcdefABCDEF";
      const std::size_t digit = at_ == end_ ? std::string::npos : digits.find(*at_);
      if (digit == std::string::npos) bad("four digits after \\u");
      ++at_;
      code = 16 * code + static_cast<std::uint32_t>(digit < 16 ? digit : digit - 6);
    }
    return code;
  }

  /// A character beyond 16 bits is written as two escapes.
  std::uint32_t readEscaped() {
    const std::uint32_t code = readHex();
    if (code < 0xd800 || code >= 0xdc00) return code;
    if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') bad("pairs of surrogates");
    at_ += 2;
    const std::uint32_t low = readHex();
    if (low < 0xdc00 || low > 0xdfff) bad("pairs of surrogates");
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }

  static void addCharacter(std::string& text, std::uint32_t code) {  // as UTF-8
    const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
    if (code < 0x80) return add(code);
    if (code < 0x800) {
      add(0xc0 | (code >> 6));
    } else {
      if (code < 0x10000) {
        add(0xe0 | (code >> 12));
      } else {
        add(0xf0 | (code >> 18));
        add(0x80 | ((code >> 12) & 0x3f));
      }
      add(0x80 | ((code >> 6) & 0x3f));
    }
    add(0x80 | (code & 0x3f));
  }

  static constexpr int kMostNested = 64;
  std::map<std::string, Value> values_;
  const char* at_;
  const char* end_;
};

}  // namespace popx
