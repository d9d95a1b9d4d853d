#pragma once
#include <string>

#include "poplar/OptionFlags.hpp"

namespace poplar::internal {

/// The options of a JSON object of strings, numbers and booleans; throws invalid_option for other
/// text. The error names `where`.
OptionFlags optionsOfJson(const std::string& where, const std::string& json);

/// `options`, overridden by those of the environment variable `name` if it is set.
OptionFlags withEnvironment(const OptionFlags& options, const char* name);

}  // namespace poplar::internal
