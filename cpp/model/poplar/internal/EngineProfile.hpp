#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "engine/account/TripCounts.hpp"
#include "engine/image/Image.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/ProfileValue.hpp"

namespace poplar::internal {

/// The cost of one of an image's programs, with the loop iterations that were counted.
ipujax::engine::Cost costOfEntry(const ipujax::engine::Image& image, const std::string& entry,
                                 const ipujax::engine::TripMeans& trips);

/// The parts of a cost, by name.
ProfileValue::Map accountOf(const ipujax::engine::Cost& cost);

/// The runs of an engine: their names and estimated costs.
class RunLog {
 public:
  /// `entry` is the program's number.
  void add(std::string name, std::string entry, const ipujax::engine::Cost& cost,
           const ipujax::engine::TripMeans& trips);
  void reset() { runs_.clear(); }
  void enable(bool enabled) { enabled_ = enabled; }
  double allCycles() const { return all_cycles_; }  ///< includes unrecorded runs
  ProfileValue profile(double clock_hz) const;
  void print(std::ostream& os) const;
  /// The report as pva reads it: options that select blocks, the runs with the iterations of their
  /// data-dependent loops, and the image.
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
