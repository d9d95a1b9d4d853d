#pragma once
#include <cstddef>
#include <string>
#include <type_traits>

#include "poplar/Type.hpp"

namespace poputil {

/// A template argument of a vertex as written in the vertex's name.
inline std::string vertexTemplateToString(const poplar::Type& type) { return type.toString(); }
inline std::string vertexTemplateToString(const std::string& text) { return text; }
inline std::string vertexTemplateToString(const char* text) { return text; }
inline std::string vertexTemplateToString(bool flag) { return flag ? "true" : "false"; }
template <class T>
std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, std::string>
vertexTemplateToString(T value) {
  return std::to_string(value);
}

/// The same as a trait, which a program may specialise for its own types.
template <typename T>
struct VertexTemplateToString {
  static std::string to_string(const T& value) { return vertexTemplateToString(value); }
};
template <std::size_t n>
struct VertexTemplateToString<char[n]> {
  static std::string to_string(const char* text) { return text; }
};

/// "Name<float,true>": the instance of a vertex template, for Graph::addVertex.
template <class... Args>
std::string templateVertex(const std::string& name, const Args&... args) {
  if constexpr (sizeof...(args) == 0) {
    return name;
  } else {
    std::string list;
    ((list += (list.empty() ? "" : ",") + VertexTemplateToString<Args>::to_string(args)), ...);
    return name + "<" + list + ">";
  }
}

}  // namespace poputil
