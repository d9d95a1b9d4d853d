#include "poplar/internal/JsonOptions.hpp"

#include <cctype>
#include <cstdlib>
#include <string_view>

#include "poplar/exceptions.hpp"

namespace poplar::internal {
namespace {

/// Reads one object whose members have no members of their own.
class Reader {
 public:
  Reader(const std::string& where, std::string_view text) : where_(where), text_(text) {}

  OptionFlags object() {
    OptionFlags options;
    expect('{');
    for (bool first = true; !accept('}'); first = false) {
      if (!first) expect(',');
      const std::string name = quoted();
      expect(':');
      options.set(name, peek() == '"' ? quoted() : bare());
    }
    if (peek() != '\0') refuse();
    return options;
  }

 private:
  [[noreturn]] void refuse() const {
    throw invalid_option("[" + where_ + "] needs a JSON object of options and values; got '" +
                         std::string(text_) + "'. Write {\"option\": \"value\"}.");
  }
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse();
  }
  std::string quoted() {
    expect('"');
    std::string value;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && ++at_ == text_.size()) refuse();
      value += text_[at_++];
    }
    expect('"');
    return value;
  }
  std::string bare() {
    std::string value;
    peek();
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
            std::string_view("+-.").find(text_[at_]) != std::string_view::npos))
      value += text_[at_++];
    if (value.empty()) refuse();
    return value;
  }

  std::string where_;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

OptionFlags optionsOfJson(const std::string& where, const std::string& json) {
  return Reader(where, json).object();
}

OptionFlags withEnvironment(const OptionFlags& options, const char* name) {
  const char* given = std::getenv(name);
  if (!given || *given == '\0') return options;
  OptionFlags all = options;
  for (const auto& [option, value] : optionsOfJson(name, given)) all.set(option, value);
  return all;
}

}  // namespace poplar::internal
