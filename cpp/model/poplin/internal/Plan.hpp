#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/Cost.hpp"
#include "engine/ElementType.hpp"
#include "poplar/Target.hpp"
#include "poputil/exceptions.hpp"

/// How a matrix product or convolution is split over the tiles: PopLibs' planner in closed form.
namespace poplin::plan {

enum class Vertex : std::uint8_t {
  kAmp,
  kSlic,
  kHorizontalMac,
  kVerticalMac,
  kOuterProduct,
  kInteger
};
const char* nameOf(Vertex vertex);

/// Constraints on a plan, see PlanConstraints.hpp; 0 or no value leaves a member free.
struct Constraints {
  std::optional<Vertex> vertex{};
  std::uint64_t group_grain = 0, in_grain = 0, out_grain = 0;
  std::uint64_t group_split = 0, in_split = 0, out_split = 0;
  std::uint64_t rows_multiple = 0;  ///< rows are split into a multiple of these
  /// The factors of rows_multiple, which only convolutions distinguish.
  std::uint64_t batch_split = 0;
  std::vector<std::uint64_t> field_split{};  ///< of each axis; missing last ones are free
  std::uint64_t in_serial = 0, out_serial = 0;
  std::optional<bool> swapped{}, expanded{};

  auto operator<=>(const Constraints&) const = default;
};

/// Everything that a plan depends on, so also the key of the cache.
struct Problem {
  std::uint64_t groups = 1;
  std::uint64_t rows = 1;        ///< batch x outputs of the field
  std::uint64_t row_length = 1;  ///< outputs in one line of the field
  std::uint64_t batch = 1;
  std::vector<std::uint64_t> field{};  ///< outputs along each axis; empty for products
  std::uint64_t in_channels = 1;       ///< of one group
  std::uint64_t out_channels = 1;
  std::uint64_t kernel_height = 1;  ///< of all but the last axis
  std::uint64_t kernel_width = 1;
  std::uint64_t input_elements = 1;  ///< of one group, without padding
  std::uint64_t stride = 1;
  ipujax::engine::ElementType in_type = ipujax::engine::ElementType::kFloat;
  ipujax::engine::ElementType out_type = ipujax::engine::ElementType::kFloat;
  bool half_partials = false;
  bool quarters = false;  ///< halves that stand for floats of 8 bits: partials are half
  bool wide_weight_load = false;
  bool multi_stage_reduce = true;
  bool transforms = true;   ///< kernels may be expanded and operands swapped
  std::uint64_t tiles = 0;  ///< at most; 0: all
  double memory_proportion = 0.6;
  /// Operands that lie elsewhere and are moved and regrouped first.
  bool in_moved = false;
  bool weights_moved = false;
  bool limits_moves = true;  ///< moved operands count towards the limit
  Constraints constraints{};

  std::uint64_t taps() const { return kernel_height * kernel_width; }
  auto operator<=>(const Problem&) const = default;
};

struct Plan {
  Vertex vertex = Vertex::kAmp;
  bool expanded = false;  ///< kernel elements became input channels (the input is gathered first)
  bool swapped = false;   ///< the weights act as input; both are regrouped for it first
  std::uint64_t group_split = 1, row_split = 1, in_split = 1, out_split = 1;
  /// Slices of output or of input channels, one after another; one of the two is 1.
  std::uint64_t out_serial = 1, in_serial = 1;
  std::uint64_t tiles = 1;  ///< tiles that compute
  /// Elements of the operands on one tile of the plan's own placement.
  std::uint64_t in_elements_per_tile = 1, weight_elements_per_tile = 1, out_elements_per_tile = 1;
  std::uint64_t chain = 0;    ///< half partials: products one tile adds up; 0: float partials
  ipujax::engine::Cost cost;  ///< of one run, moves of operands included
  bool fits = true;
  std::uint64_t serial() const { return out_serial * in_serial; }
  std::string splits() const;  ///< text for reports of a program
  std::string report() const;
};

/// No plan meets the constraints.
struct no_plan : poputil::poplibs_error {
  using poplibs_error::poplibs_error;
};

/// The plan with the fewest cycles among all whose temporaries fit the memory proportion; if none
/// fits, the one with the least memory. Candidates do not depend on the proportion, so that more
/// memory never costs cycles. `bounded` skips candidates that are sure to be slower, which does not
/// change the plan. Throws no_plan if none meets the constraints.
Plan makePlan(const Problem& problem, const poplar::Target& target, bool bounded = true);

}  // namespace poplin::plan
