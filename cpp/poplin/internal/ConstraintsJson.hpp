#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace poplin {

/// A JSON value of the option planConstraints. Numbers are whole and not negative: constraints have
/// no others.
struct ConstraintsJson {
  enum class Kind : std::uint8_t { kObject, kArray, kNumber, kString, kBool };
  Kind kind = Kind::kObject;
  std::uint64_t number = 0;  ///< of a bool: 0 or 1
  std::string text;
  std::vector<ConstraintsJson> items;
  std::vector<std::pair<std::string, ConstraintsJson>> members;
};

/// Throws poplar::invalid_option for other text; `where` is the function's name, "poplin::matMul".
ConstraintsJson readConstraintsJson(const std::string& where, const std::string& text);

/// The error of constraints that `where` does not take.
[[noreturn]] void refuseConstraints(const std::string& where, const std::string& needs,
                                    const std::string& got);

}  // namespace poplin
