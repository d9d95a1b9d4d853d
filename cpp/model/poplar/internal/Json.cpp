#include "poplar/internal/Json.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace poplar::internal {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json read() {
    Json found = value(0);
    peek();
    if (at_ != text_.size()) fail();
    return found;
  }

 private:
  static constexpr int kDeepest = 8;

  [[noreturn]] void fail() const {
    constexpr std::size_t kShown = 80;
    throw JsonError("'" + std::string(text_.substr(0, kShown)) +
                    "', which ends or differs at byte " + std::to_string(at_));
  }
  char peek() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }

  Json value(int depth) {
    if (depth > kDeepest) fail();
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return {Json::Kind::kString, string(), {}, {}};
      default:
        return word();
    }
  }

  Json object(int depth) {
    Json found;
    expect('{');
    while (!accept('}')) {
      if (!found.members.empty()) expect(',');
      std::string name = string();
      for (const auto& member : found.members)
        if (member.first == name) throw JsonError("'" + name + "' twice");
      expect(':');
      Json member = value(depth + 1);
      found.members.emplace_back(std::move(name), std::move(member));
    }
    return found;
  }

  Json array(int depth) {
    Json found{Json::Kind::kArray, {}, {}, {}};
    expect('[');
    while (!accept(']')) {
      if (!found.items.empty()) expect(',');
      found.items.push_back(value(depth + 1));
    }
    return found;
  }

  std::string string() {
    expect('"');
    std::string found;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\')
        addEscaped(found);
      else
        found += text_[at_++];
    }
    if (at_ == text_.size()) fail();
    ++at_;
    return found;
  }

  void addEscaped(std::string& to) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kCharacters = "\"\\/\b\f\n\r\t";
    const char name = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (name == 'u') return addCodePoint(to);
    const std::size_t found = kNames.find(name);
    if (found == std::string_view::npos) fail();
    to += kCharacters[found];
    at_ += 2;
  }

  /// \u and four hexadecimal digits, as UTF-8. Surrogates are refused.
  void addCodePoint(std::string& to) {
    const std::string_view digits = text_.substr(std::min(at_ + 2, text_.size()), 4);
    unsigned code = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    const bool is_surrogate = code >= 0xd800 && code < 0xe000;
    if (digits.size() != 4 || error != std::errc() || end != digits.data() + digits.size() ||
        is_surrogate)
      fail();
    const auto add = [&](unsigned byte) { to += static_cast<char>(byte); };
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xc0 | code >> 6);
    } else {
      add(0xe0 | code >> 12);
      add(0x80 | (code >> 6 & 0x3f));
    }
    if (code >= 0x80) add(0x80 | (code & 0x3f));
    at_ += 6;
  }

  Json word() {
    const std::size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    const std::string_view found = text_.substr(at_, end - at_);
    const bool is_bool = found == "true" || found == "false";
    if (!is_bool && !isNumber(found)) fail();
    at_ = end;
    return {is_bool ? Json::Kind::kBool : Json::Kind::kNumber, std::string(found), {}, {}};
  }

  /// [-] digits [. digits] [e [+-] digits]
  static bool isNumber(std::string_view word) {
    std::size_t at = 0;
    const auto take = [&](std::string_view characters) {
      const bool is_there = at < word.size() && characters.find(word[at]) != word.npos;
      at += is_there;
      return is_there;
    };
    const auto digits = [&] {
      const std::size_t begin = at;
      while (take("0123456789")) continue;
      return at > begin;
    };
    take("-");
    if (!digits()) return false;
    if (take(".") && !digits()) return false;
    if (!take("eE")) return at == word.size();
    take("+-");
    return digits() && at == word.size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Json readJson(std::string_view text) { return Reader(text).read(); }

}  // namespace poplar::internal
