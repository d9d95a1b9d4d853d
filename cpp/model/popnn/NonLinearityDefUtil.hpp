#pragma once
#include <istream>
#include <ostream>
#include <string>

#include "popnn/NonLinearityDef.hpp"
#include "poputil/VertexTemplates.hpp"
#include "poputil/exceptions.hpp"

namespace popnn {

inline const char* asString(const NonLinearityType& type) {
  static const char* const names[] = {"sigmoid",
                                      "hard sigmoid",
                                      "relu",
                                      "tanh",
                                      "gelu",
                                      "gelu (erf)",
                                      "swish",
                                      "softmax",
                                      "softmax (stable)",
                                      "softmax (scaled, stable)"};
  return names[static_cast<int>(type)];
}

inline std::ostream& operator<<(std::ostream& os, const NonLinearityType& type) {
  return os << asString(type);
}

/// Reads one word: sigmoid, hard_sigmoid, relu, tanh, gelu, gelu_erf, swish, softmax,
/// softmax_stable or softmax_scaled.
inline std::istream& operator>>(std::istream& in, NonLinearityType& type) {
  static const char* const names[] = {"sigmoid",        "hard_sigmoid",  "relu",  "tanh",
                                      "gelu",           "gelu_erf",      "swish", "softmax",
                                      "softmax_stable", "softmax_scaled"};
  std::string word;
  in >> word;
  int at = 0;
  for (const char* name : names) {
    if (word == name) {
      type = static_cast<NonLinearityType>(at);
      return in;
    }
    ++at;
  }
  throw poputil::poplibs_error("[popnn] needs the name of a non-linearity; got " + word +
                               ". Use sigmoid, relu, tanh, gelu or softmax.");
}

/// The type as written in the names of vertices; poputil::templateVertex finds this function.
inline std::string vertexTemplateToString(const NonLinearityType& type) {
  static const char* const names[] = {"SIGMOID",        "HARD_SIGMOID",  "RELU",  "TANH",
                                      "GELU",           "GELU_ERF",      "SWISH", "SOFTMAX",
                                      "SOFTMAX_STABLE", "SOFTMAX_SCALED"};
  return std::string("popnn::NonLinearityType::") + names[static_cast<int>(type)];
}

}  // namespace popnn
