#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "poplar/OptionFlags.hpp"
#include "poplar/Type.hpp"
#include "popops/Operation.hpp"

namespace popops::internal {

/// Options of plans and of slices; both accept each other's.
/// Source: PopLibs, popops/DynamicSlice.hpp and lib/popops/DynamicSlice.cpp (parseSliceOptions).
struct SliceOptions {
  // For plans.
  bool used_for_slice = true;
  bool used_for_update = true;
  std::optional<Operation> update = Operation::ADD;
  std::optional<poplar::Type> partial_type;  ///< of updates that add; nullopt: the table's
  double memory_proportion = 0.6;            ///< of a tile's memory, for temporaries
  bool all_indices_equal = false;            ///< indicesDistribution = onePoint
  bool indices_are_sorted = false;
  /// The numbers of a partition that planConstraints fixes, by PopLibs' names.
  std::map<std::string, std::size_t> constraints;

  // For slices and updates.
  bool validates_indices = false;  ///< an index outside ends the run
  bool remaps_to_zero = false;     ///< an index outside is read as 0
  bool has_padding_index = false;  ///< the table's size is an index: reads zeros, skips updates
};

/// Throws invalid_option for options of neither, and for wrong values.
SliceOptions sliceOptions(const poplar::OptionFlags& options);

}  // namespace popops::internal
