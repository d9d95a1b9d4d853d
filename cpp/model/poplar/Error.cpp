#include "poplar/Error.hpp"

#include <algorithm>
#include <iterator>

namespace poplar {
namespace {

constexpr const char* kNames[] = {
    "NONE",
    "UNKNOWN",
    "TRAP",
    "FLOATING_POINT_INVALID_OPERATION",
    "FLOATING_POINT_DIVIDE_BY_ZERO",
    "FLOATING_POINT_OVERFLOW",
    "TILE_MEMORY_BANK_CONFLICT",
    "INVALID_EXCHANGE_CONFIGURATION",
    "INVALID_ADDRESS",
    "INVALID_OPERAND",
    "INVALID_PROGRAM_COUNTER",
    "INVALID_INSTRUCTION",
    "EXCHANGE_ERROR",
    "MEMORY_ERROR",
    "IPUSOFTERR",
    "LINK_DOWN",
    "HOST_LINK_DOWN",
    "HOST_SYNC_TIMEOUT",
    "IPU_MEMORY_FAILURE",
};

}  // namespace

StringRef errorCodeToString(ErrorCode code) {
  const auto i = static_cast<std::size_t>(code);
  return i < std::size(kNames) ? kNames[i] : "UNKNOWN";
}

ErrorCode errorCodeFromString(StringRef name) {
  const auto* const found = std::ranges::find(kNames, std::string_view(name));
  if (found == std::end(kNames)) return ErrorCode::UNKNOWN;
  return static_cast<ErrorCode>(found - std::begin(kNames));
}

}  // namespace poplar
