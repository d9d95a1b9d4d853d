#pragma once
#include <string>

#include "poplar/exceptions.hpp"
#include "poputil/OptionParsing.hpp"

namespace poputil::internal {

/// Parses all options. The error for an invalid one consists of `where`, the parser's message and
/// `advice`.
inline void parseOptions(const poplibs::OptionSpec& spec, const poplar::OptionFlags& options,
                         const std::string& where, const std::string& advice) {
  for (const auto& [name, value] : options) {
    try {
      spec.parse(name, value);
    } catch (const poplar::invalid_option& error) {
      throw poplar::invalid_option(where + " " + error.what() + ". " + advice);
    }
  }
}

}  // namespace poputil::internal
