#include "gcl/internal/Options.hpp"

#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "poplar/exceptions.hpp"
#include "poplar/internal/NearName.hpp"

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

template <class Names, class NameOf>
std::string listOf(const Names& names, const NameOf& name) {
  std::string list;
  for (const auto& each : names) list += (list.empty() ? "" : ", ") + name(each);
  return list;
}

Method methodOf(const std::string& name, const std::string& value) {
  for (const Method method : kMethods)
    if (value == nameOf(method)) return method;
  refuse(name, value,
         "one of " + listOf(kMethods, [](Method m) { return std::string(nameOf(m)); }));
}

std::uint64_t bytesOf(const std::string& name, const std::string& value) {
  std::uint64_t bytes = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, bytes);
  if (value.empty() || error != std::errc() || stop != end) refuse(name, value, "a number >= 0");
  return bytes;
}

/// Options that choose between GCL's implementations, which the model does not distinguish, and
/// their values; an empty set allows any. Source: GCL's API reference of SDK 2.4 to 3.3.
using Values = std::set<std::string>;
const std::map<std::string, Values>& withoutEffect() {
  static const Values yes_or_no{"true", "false", "auto"};
  static const std::map<std::string, Values> options{
      {"collectiveImplementation", {}},
      {"link", {"auto-link", "ipu-link", "gw-link"}},
      {"syncful.allToAll", {}},
      {"syncful.useForwardingToSupportStridedGroups", yes_or_no},
      {"syncful.useOptimisedLayout", yes_or_no},
      {"topology",
       {"auto", "rung-ring-2", "rung-ring-4", "rung-ring-8", "ring-on-line", "peripheral-ring"}},
      {"useGclCollectives", yes_or_no},
      {"useReplicatedImplementation", yes_or_no},
      {"useSynclessCollectives",
       {"true", "false", "auto", "hybrid", "Syncless", "Syncful", "Hybrid"}}};
  return options;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> found{"method", "syncful.maxBroadcastSize", "maxBytesPerTile"};
  for (const auto& option : withoutEffect()) found.emplace_back(option.first);
  return found;
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
    } else if (name == "maxBytesPerTile") {
      bytesOf(name, value);
    } else if (const auto found = withoutEffect().find(name); found != withoutEffect().end()) {
      const Values& values = found->second;
      if (!values.empty() && !values.contains(value))
        refuse(name, value, "one of " + listOf(values, [](const auto& v) { return v; }));
    } else {
      throw poplar::invalid_option(
          "[gcl] needs options it knows; got '" + name + "'. " +
          poplar::internal::didYouMean(name, names()) +
          "Known are method, syncful.maxBroadcastSize and, without effect, maxBytesPerTile, " +
          listOf(withoutEffect(), [](const auto& option) { return option.first; }) + ".");
    }
  }
  return result;
}

}  // namespace gcl
