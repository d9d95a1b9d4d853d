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

/// Options of a collective (GCL User Guide, "Setting options").
struct Options {
  Method method = Method::kAuto;
  /// "syncful.maxBroadcastSize": kAuto does not choose kBroadcast if the data's bytes times the
  /// group's size exceed this.
  std::uint64_t max_broadcast_bytes = 2048;

  /// Throws poplar::invalid_option for an unknown name or an invalid value.
  static Options read(const poplar::OptionFlags& options);
};

}  // namespace gcl
