#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace ipujax::engine::reduction {

/// How reductions, windows, scatters and collectives combine two values. The numbers are part of
/// the executable format. kAnd, kOr, kXor: bitwise on integers, logical on kBool. kMinimum,
/// kMaximum propagate NaN.
enum class Reducer : std::uint8_t {
  kAdd,
  kMultiply,
  kMinimum,
  kMaximum,
  kAnd,
  kOr,
  kXor,
  kSquareAdd,
  kLogAdd,
};
constexpr int kNumReducers = 9;
/// "add", "mul", "min", "max", "and", "or", "xor", "square_add", "log_add".
const char* nameOf(Reducer reducer);
std::optional<Reducer> reducerOf(std::string_view name);
}  // namespace ipujax::engine::reduction
