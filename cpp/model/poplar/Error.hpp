#pragma once
#include <cstddef>
#include <functional>
#include <ostream>

#include "poplar/StringRef.hpp"

namespace poplar {

/// Errors of a device. Source: Poplar API reference, Error.hpp.
enum class ErrorCode : unsigned {
  NONE = 0,
  UNKNOWN,
  TRAP,
  FLOATING_POINT_INVALID_OPERATION,
  FLOATING_POINT_DIVIDE_BY_ZERO,
  FLOATING_POINT_OVERFLOW,
  TILE_MEMORY_BANK_CONFLICT,
  INVALID_EXCHANGE_CONFIGURATION,
  INVALID_ADDRESS,
  INVALID_OPERAND,
  INVALID_PROGRAM_COUNTER,
  INVALID_INSTRUCTION,
  EXCHANGE_ERROR,
  MEMORY_ERROR,
  IPUSOFTERR,
  LINK_DOWN,
  HOST_LINK_DOWN,
  HOST_SYNC_TIMEOUT,
  IPU_MEMORY_FAILURE,
};

/// The enumerator's name, and the reverse; UNKNOWN for any other text.
StringRef errorCodeToString(ErrorCode code);
ErrorCode errorCodeFromString(StringRef name);
inline std::ostream& operator<<(std::ostream& os, ErrorCode code) {
  return os << errorCodeToString(code);
}

/// Location of an error: a tile of an engine.
struct ErrorLocation {
  explicit ErrorLocation(unsigned tile = 0) : tile(tile) {}
  unsigned getTile() const { return tile; }
  friend bool operator==(const ErrorLocation& a, const ErrorLocation& b) {
    return a.tile == b.tile;
  }
  friend bool operator!=(const ErrorLocation& a, const ErrorLocation& b) { return !(a == b); }
  friend bool operator<(const ErrorLocation& a, const ErrorLocation& b) { return a.tile < b.tile; }

  unsigned tile;
};

/// For unordered containers of locations.
struct ErrorLocationHash {
  std::size_t operator()(const ErrorLocation& location) const {
    return std::hash<unsigned>()(location.getTile());
  }
};

}  // namespace poplar
