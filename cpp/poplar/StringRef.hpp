#pragma once
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
  operator std::string() const { return {data(), size()}; }   // NOLINT
  std::string cloneAsString() const { return {data(), size()}; }
};

inline std::string operator+(const std::string& lhs, StringRef rhs) {
  return lhs + std::string(rhs.data(), rhs.size());
}

}  // namespace poplar
