#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/ElementType.hpp"

namespace ipujax::engine {

/// The first run of a step or a loop on the model's clock. `ipus` has one bit for each IPU; IPUs
/// from the 64th on share the last bit.
struct Slice {
  std::uint64_t node = 0;
  std::uint64_t ipus = 0;
  double times = 1;  ///< that a run executes the slice
  double begin_cycles = 0;
  double cycles = 0;  ///< of all iterations of a loop
  double compute_cycles = 0;
  double exchange_cycles = 0;
  double sync_cycles = 0;
  double link_cycles = 0;
  double host_cycles = 0;
};

/// What is live while one node runs, for each occurrence of a step in the order of the program.
struct LivePoint {
  std::uint64_t node = 0;
  std::uint64_t live_bytes = 0;          ///< of variables, on all tiles
  std::uint64_t fullest_tile_bytes = 0;  ///< temporaries of the step included, code not
};

/// One variable in tile memory.
struct TensorProfile {
  std::uint32_t debug = 0;  ///< index into the image's table of names and source lines
  std::uint32_t category = 0;
  ElementType type = ElementType::kFloat;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
  std::uint64_t peak_tile_bytes = 0;  ///< on the fullest tile, if it is live at the peak
  std::uint64_t live_at_peak = 0;     ///< at the peaks of which IPUs, one bit each as in Slice
  bool always_live = false;
};

/// The bytes of each tile of one IPU at the peak of its fullest tile.
struct TileProfile {
  std::uint32_t fullest_tile = 0;         ///< counted from the IPU's first
  std::vector<std::uint32_t> tile_bytes;  ///< of each tile, category after category
};

/// Where time and memory go: what reports show besides the costs of the steps. Made on request.
struct Profile {
  std::vector<Slice> slices;
  std::vector<LivePoint> live;
  std::vector<std::string> categories;  ///< of tile memory
  std::vector<TensorProfile> tensors;   ///< the largest, and those that fill the fullest tiles
  std::vector<TileProfile> ipus;
  double half_flops_per_cycle = 0;  ///< peak of all tiles of a device, for 16-bit operands
  double float_flops_per_cycle = 0;
};

}  // namespace ipujax::engine
