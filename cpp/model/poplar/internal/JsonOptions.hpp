#pragma once
#include <string>

#include "poplar/OptionFlags.hpp"

namespace poplar::internal {

/// The options of a JSON object of texts, numbers and booleans; throws invalid_option for other
/// text, which `where` says the place of.
OptionFlags optionsOfJson(const std::string& where, const std::string& json);

/// `options`, with those of the environment variable `name` on top if it is set.
OptionFlags withEnvironment(const OptionFlags& options, const char* name);

}  // namespace poplar::internal
