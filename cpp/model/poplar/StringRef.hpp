#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace poplar {

/// A borrowed string; the argument type of most of the API.
class StringRef : public std::string_view {
 public:
  StringRef() = default;
  StringRef(const char* s) : std::string_view(s ? s : "") {}  // NOLINT: implicit as in the SDK
  StringRef(const std::string& s) : std::string_view(s) {}    // NOLINT
  StringRef(std::string_view s) : std::string_view(s) {}      // NOLINT
  StringRef(const char* data, std::size_t size) : std::string_view(data, size) {}
  operator std::string() const { return {data(), size()}; }  // NOLINT
  std::string cloneAsString() const { return {data(), size()}; }
};

inline std::string operator+(StringRef lhs, StringRef rhs) {
  std::string text = lhs.cloneAsString();
  return text.append(rhs.data(), rhs.size());
}

}  // namespace poplar
