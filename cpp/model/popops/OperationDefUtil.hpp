#pragma once
#include <sstream>
#include <string>

#include "popops/Operation.hpp"
#include "poputil/VertexTemplates.hpp"

namespace poputil {

/// "Square Add" for SQUARE_ADD.
const char* asString(const popops::Operation& op);

template <>
struct VertexTemplateToString<popops::Operation> {
  static std::string to_string(const popops::Operation& op) {
    std::ostringstream text;
    text << "popops::Operation::" << op;
    return text.str();
  }
};

}  // namespace poputil
