#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poplar::internal {

/// A JSON value: the options, plan constraints and parameters that programs pass as text.
struct Json {
  enum class Kind : std::uint8_t { kObject, kArray, kNumber, kString, kBool };
  Kind kind = Kind::kObject;
  std::string text;  ///< of a string; of a number or bool as it is written: "-0.5", "true"
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;  ///< in the order of the text; each name once

  bool isScalar() const { return kind != Kind::kObject && kind != Kind::kArray; }
};

/// Text that is not JSON. `what()` completes an error's "got": "'{\"a\" 1}', which ends or differs
/// at byte 5".
struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Parses one value and nothing after it, nested at most 8 deep, without null and without
/// surrogates; throws JsonError for other text.
Json readJson(std::string_view text);

}  // namespace poplar::internal
