#include "gcl/internal/Options.hpp"

#include <charconv>
#include <set>

#include "poplar/exceptions.hpp"

namespace gcl {
namespace {

constexpr Method kMethods[] = {Method::kAuto,
                               Method::kClockwiseRing,
                               Method::kAnticlockwiseRing,
                               Method::kBidirectionalRingPair,
                               Method::kMeetInMiddleRing,
                               Method::kQuadDirectionalRing,
                               Method::kBroadcast};

[[noreturn]] void refuse(const std::string& name, const std::string& value,
                         const std::string& needs) {
  throw poplar::invalid_option("[gcl] option '" + name + "' needs " + needs + "; got '" + value +
                               "'. Set it so, or leave it out.");
}

Method methodOf(const std::string& name, const std::string& value) {
  std::string known;
  for (const Method method : kMethods) {
    if (value == nameOf(method)) return method;
    known += std::string(known.empty() ? "" : ", ") + nameOf(method);
  }
  refuse(name, value, "one of " + known);
}

std::uint64_t bytesOf(const std::string& name, const std::string& value) {
  std::uint64_t bytes = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, bytes);
  if (value.empty() || error != std::errc() || stop != end) refuse(name, value, "a number >= 0");
  return bytes;
}

/// Options that change how GCL lays out its code on tiles, which the model does not distinguish.
const std::set<std::string>& layouts() {
  static const std::set<std::string> names{"syncful.useOptimisedLayout",
                                           "syncful.useForwardingToSupportStridedGroups",
                                           "useReplicatedImplementation"};
  return names;
}

}  // namespace

const char* nameOf(Method method) {
  switch (method) {
    case Method::kAuto:
      return "auto";
    case Method::kClockwiseRing:
      return "clockwise_ring";
    case Method::kAnticlockwiseRing:
      return "anticlockwise_ring";
    case Method::kBidirectionalRingPair:
      return "bidirectional_ring_pair";
    case Method::kMeetInMiddleRing:
      return "meet_in_middle_ring";
    case Method::kQuadDirectionalRing:
      return "quad_directional_ring";
    case Method::kBroadcast:
      return "broadcast";
  }
  return "?";
}

Options Options::read(const poplar::OptionFlags& options) {
  Options result;
  for (const auto& [name, value] : options) {
    if (name == "method") {
      result.method = methodOf(name, value);
    } else if (name == "syncful.maxBroadcastSize") {
      result.max_broadcast_bytes = bytesOf(name, value);
    } else if (layouts().contains(name)) {
      if (value != "true" && value != "false" && value != "auto") {
        refuse(name, value, "true, false or auto");
      }
    } else {
      throw poplar::invalid_option(
          "[gcl] needs options it knows; got '" + name +
          "'. Known are method, syncful.maxBroadcastSize, syncful.useOptimisedLayout, "
          "syncful.useForwardingToSupportStridedGroups and useReplicatedImplementation.");
    }
  }
  return result;
}

}  // namespace gcl
