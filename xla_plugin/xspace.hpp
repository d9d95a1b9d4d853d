#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ipujax::plugin::xspace {

/// What JAX's profiler collects: planes of lines of events, as tsl.profiler.XSpace
/// (tsl/profiler/protobuf/xplane.proto). Only the fields that are set here are declared.
struct Event {
  std::string_view name;  ///< must live until the plane is serialised
  std::int64_t offset_picoseconds = 0;
  std::int64_t picoseconds = 0;
  double cycles = 0;
  std::string_view source{};  ///< "train.py:31", or empty
};

struct Line {
  std::string name;
  std::int64_t begin_nanoseconds = 0;  ///< since 1970; offsets of events count from here
  std::vector<Event> events;
};

struct Plane {
  std::string name;
  std::vector<Line> lines;
};

/// The bytes of an XSpace with these planes and warnings.
std::string serialise(const std::vector<Plane>& planes, const std::vector<std::string>& warnings);

}  // namespace ipujax::plugin::xspace
