#pragma once
#include <string>
#include <string_view>

namespace ipujax::engine {

/// The line in the source text of a debug context, "train.py:31". With a profile, lines about the
/// layer and the call stack follow, which reports alone read.
inline std::string lineOf(std::string_view source) {
  return std::string(source.substr(0, source.find('\n')));
}

/// As messages have it: "name (train.py:31)".
inline std::string placeOf(const std::string& name, std::string_view source) {
  return source.empty() ? name : name + " (" + lineOf(source) + ")";
}

}  // namespace ipujax::engine
