#pragma once
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/account/TripCounts.hpp"
#include "engine/image/Image.hpp"
#include "pva/Program.hpp"

namespace pva {

/// The contents of a report; only for the library.
struct Data {
  struct Run {
    std::string name;
    std::string entry;
    ipujax::engine::TripMeans trips{};  ///< of its data-dependent loops
  };
  std::shared_ptr<const ipujax::engine::Image> image;
  std::vector<Run> runs;
  std::map<std::string, std::string> options;  ///< of the engine, to select blocks
  std::vector<std::uint64_t> ipus_by_node;     ///< one bit per IPU; empty: not known

  std::uint64_t tileBytes(std::size_t tile, ipujax::engine::TilePart part) const;
  const std::string& nameOf(std::uint32_t debug) const;
  /// The node of the program that a run executed.
  std::optional<std::uint32_t> programOf(const std::string& entry) const;
  /// Mean iterations of a loop each time that the run reached it.
  double tripsOf(const Run& run, std::uint32_t node) const;
  /// Whether the tile's IPU takes part in a program; true without a profile.
  bool takesPart(std::uint32_t node, std::size_t tile) const;
};

ProgramPtr programOf(const DataPtr& data, std::size_t id);

inline std::uint64_t rounded(double cycles) {
  return static_cast<std::uint64_t>(std::llround(cycles));
}

}  // namespace pva
