#pragma once
#include <string>
#include <string_view>

namespace ipujax::engine {

/// First line of a debug context's source text: "train.py:31". With a profile, lines about the
/// layer and the call stack follow; only reports read them.
inline std::string lineOf(std::string_view source) {
  return std::string(source.substr(0, source.find('\n')));
}

/// Form used in messages: "name (train.py:31)".
inline std::string placeOf(const std::string& name, std::string_view source) {
  return source.empty() ? name : name + " (" + lineOf(source) + ")";
}

}  // namespace ipujax::engine
