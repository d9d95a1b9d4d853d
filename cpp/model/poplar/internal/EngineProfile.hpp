#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "engine/account/TripCounts.hpp"
#include "engine/image/Image.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/ProfileValue.hpp"

namespace poplar::internal {

/// The account of what one of an image's programs does, with loops as often as was counted.
ipujax::engine::Cost costOfEntry(const ipujax::engine::Image& image, const std::string& entry,
                                 const ipujax::engine::TripMeans& trips);

/// A cost by the names of its parts.
ProfileValue::Map accountOf(const ipujax::engine::Cost& cost);

/// The runs of an engine: their names and what they took by account.
class RunLog {
 public:
  /// `entry` is the program's number.
  void add(std::string name, std::string entry, const ipujax::engine::Cost& cost,
           const ipujax::engine::TripMeans& trips);
  void reset() { runs_.clear(); }
  void enable(bool enabled) { enabled_ = enabled; }
  double allCycles() const { return all_cycles_; }  ///< also of runs that were not recorded
  ProfileValue profile(double clock_hz) const;
  void print(std::ostream& os) const;
  /// The options that choose blocks, the runs, each with the iterations of its loops whose counts
  /// are data, and the image, as pva reads them.
  std::string report(const ipujax::engine::Image& image, const OptionFlags& options) const;

 private:
  struct Run {
    std::string name;
    std::string entry;
    ipujax::engine::Cost cost;
    ipujax::engine::TripMeans trips;
  };
  std::vector<Run> runs_;
  double all_cycles_ = 0;
  bool enabled_ = true;
};

}  // namespace poplar::internal
