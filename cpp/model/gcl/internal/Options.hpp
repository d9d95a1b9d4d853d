#pragma once
#include <cstdint>
#include <string>

#include "poplar/OptionFlags.hpp"

namespace gcl {

/// How data travels between the members of a group; the names of GCL's option "method".
enum class Method : std::uint8_t {
  kAuto,
  kClockwiseRing,
  kAnticlockwiseRing,
  kBidirectionalRingPair,
  kMeetInMiddleRing,
  kQuadDirectionalRing,
  kBroadcast,
};
const char* nameOf(Method method);

/// What the options of a collective say (GCL User Guide, "Setting options").
struct Options {
  Method method = Method::kAuto;
  /// "syncful.maxBroadcastSize": above so many bytes times the group's size, auto takes no
  /// broadcast.
  std::uint64_t max_broadcast_bytes = 2048;

  /// Throws poplar::invalid_option for a name it does not know or a value that has no meaning.
  static Options read(const poplar::OptionFlags& options);
};

}  // namespace gcl
