#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "poplar/internal/Json.hpp"

namespace poplin {

using poplar::internal::Json;

/// The JSON of an option planConstraints; throws poplar::invalid_option for other text. `where` is
/// the function's name, "poplin::matMul".
Json readConstraintsJson(const std::string& where, const std::string& text);

/// A number of parts or channels: an integer from 1 to 2^32; nullopt for another value.
std::optional<std::uint64_t> countOf(const Json& json);

/// The error of constraints that `where` does not take.
[[noreturn]] void refuseConstraints(const std::string& where, const std::string& needs,
                                    const std::string& got);

}  // namespace poplin
