#pragma once
#include <compare>
#include <cstdint>
#include <string>

#include "engine/Cost.hpp"
#include "engine/ElementType.hpp"
#include "poplar/Target.hpp"

/// How a matrix product or convolution is shared out over the tiles: PopLibs' planner in closed
/// form.
namespace poplin::plan {

/// What is planned; everything a plan depends on, so also the key of the cache.
struct Problem {
  std::uint64_t groups = 1;
  std::uint64_t rows = 1;         ///< batch x outputs of the field
  std::uint64_t row_length = 1;   ///< outputs in one line of the field
  std::uint64_t in_channels = 1;  ///< of one group
  std::uint64_t out_channels = 1;
  std::uint64_t kernel_height = 1;  ///< of all but the last axis
  std::uint64_t kernel_width = 1;
  std::uint64_t input_elements = 1;  ///< of one group, without padding
  std::uint64_t stride = 1;
  ipujax::engine::ElementType in_type = ipujax::engine::ElementType::kFloat;
  ipujax::engine::ElementType out_type = ipujax::engine::ElementType::kFloat;
  bool half_partials = false;
  bool wide_weight_load = false;
  double memory_proportion = 0.6;

  std::uint64_t taps() const { return kernel_height * kernel_width; }
  auto operator<=>(const Problem&) const = default;
};

enum class Vertex : std::uint8_t {
  kAmp,
  kSlic,
  kHorizontalMac,
  kVerticalMac,
  kOuterProduct,
  kInteger
};
const char* nameOf(Vertex vertex);

struct Plan {
  Vertex vertex = Vertex::kAmp;
  bool expanded = false;  ///< kernel elements became input channels (a gather of the input first)
  std::uint64_t group_split = 1, row_split = 1, in_split = 1, out_split = 1;
  std::uint64_t serial_split = 1;  ///< output channels, one slice after another
  std::uint64_t tiles = 1;         ///< tiles that compute
  /// Bytes of the operands on one tile of the plan's own placement, and the tiles used by each.
  std::uint64_t in_elements_per_tile = 1, weight_elements_per_tile = 1, out_elements_per_tile = 1;
  std::uint64_t chain = 0;    ///< half partials: products one tile adds up; 0: float partials
  ipujax::engine::Cost cost;  ///< of one run, operands placed as planned
  double in_move_bytes = 0;   ///< most one tile receives where the input was not so placed
  double weight_move_bytes = 0;
  /// Temporaries of a tile while it multiplies and while it reduces, operands placed as planned.
  std::uint64_t multiply_bytes = 0, reduce_bytes = 0;
  bool fits = true;
  std::string report() const;
};

Plan makePlan(const Problem& problem, const poplar::Target& target);

}  // namespace poplin::plan
