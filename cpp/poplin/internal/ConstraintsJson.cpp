#include "poplin/internal/ConstraintsJson.hpp"

#include <charconv>
#include <string_view>
#include <system_error>

#include "poplar/exceptions.hpp"

namespace poplin {
namespace {

using Json = ConstraintsJson;

class JsonReader {
 public:
  JsonReader(const std::string& where, std::string_view text) : where_(where), text_(text) {}

  Json read() {
    Json value = readValue(0);
    if (peek() != '\0') fail();
    return value;
  }

 private:
  static constexpr int kDeepest = 8;

  [[noreturn]] void fail() const {
    refuseConstraints(where_, "a JSON object such as {\"method\": \"AMP\"}",
                      "'" + std::string(text_.substr(0, 80)) + "', which ends or differs at byte " +
                          std::to_string(at_));
  }

  char peek() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  void need(char wanted) {
    if (!take(wanted)) fail();
  }

  bool takeWord(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::string readString() {
    need('"');
    const std::size_t end = text_.find_first_of("\"\\", at_);
    if (end == std::string_view::npos || text_[end] != '"') fail();  // no name has an escape
    std::string found(text_.substr(at_, end - at_));
    at_ = end + 1;
    return found;
  }

  Json readNumber() {
    Json value;
    value.kind = Json::Kind::kNumber;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value.number);
    if (error != std::errc()) fail();
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  Json readObject(int depth) {
    Json value;
    while (!take('}')) {
      if (!value.members.empty()) need(',');
      std::string name = (peek(), readString());
      need(':');
      for (const auto& [known, ignored] : value.members)
        if (known == name) fail();
      value.members.emplace_back(std::move(name), readValue(depth + 1));
    }
    return value;
  }

  Json readArray(int depth) {
    Json value;
    value.kind = Json::Kind::kArray;
    while (!take(']')) {
      if (!value.items.empty()) need(',');
      value.items.push_back(readValue(depth + 1));
    }
    return value;
  }

  Json readValue(int depth) {
    if (depth > kDeepest) fail();
    const char first = peek();
    if (take('{')) return readObject(depth);
    if (take('[')) return readArray(depth);
    Json value;
    if (first == '"') {
      value.kind = Json::Kind::kString;
      value.text = readString();
      return value;
    }
    value.kind = Json::Kind::kBool;
    if (takeWord("false")) return value;
    value.number = 1;
    return takeWord("true") ? value : readNumber();
  }

  const std::string& where_;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

ConstraintsJson readConstraintsJson(const std::string& where, const std::string& text) {
  return JsonReader(where, text).read();
}

void refuseConstraints(const std::string& where, const std::string& needs, const std::string& got) {
  throw poplar::invalid_option("[" + where + "] planConstraints needs " + needs + "; got " + got +
                               ". Use what a report of the plan shows, or omit it.");
}

}  // namespace poplin
