#pragma once
#include <cstddef>

#include "poplar/Target.hpp"
#include "poplar/Type.hpp"
#include "popops/internal/SliceOptions.hpp"

namespace popops::internal {

/// The numbers of parts into which a plan splits lookups in a table, with PopLibs' names.
struct SlicePartition {
  std::size_t groups = 1;   ///< groupSplit
  std::size_t lookups = 1;  ///< lookupSplit
  std::size_t rows = 1;     ///< slicedDimSplit: of the table's entries
  std::size_t columns = 1;  ///< unslicedDimSplit: of an entry's elements
  std::size_t grain = 1;    ///< unslicedGrainSize: elements of an entry that stay together

  std::size_t tiles() const { return groups * lookups * rows * columns; }
  /// Where a part is worked on: columns vary fastest, then rows, lookups, groups.
  std::size_t tileOf(std::size_t group, std::size_t lookup, std::size_t row,
                     std::size_t column) const {
    return ((group * lookups + lookup) * rows + row) * columns + column;
  }
  friend auto operator<=>(const SlicePartition&, const SlicePartition&) = default;
};

/// `groups` tables of `entries` rows of `elements`, and the number of rows looked up.
struct SliceTable {
  poplar::Type type;
  std::size_t groups = 1;
  std::size_t entries = 0;
  std::size_t elements = 0;
  std::size_t lookups = 1;
  friend bool operator==(const SliceTable& a, const SliceTable& b) = default;
};

/// The contents of a SlicePlan.
struct SlicePlanData {
  SliceTable table;
  SlicePartition partition;
};

/// The partition of fewest estimated cycles whose temporaries fit into the tile memory that the
/// options allow, or of fewest cycles if none fits; of equal ones, the first found. Throws
/// poplibs_error if the options allow no partition.
/// Source: PopLibs, lib/popops/DynamicSlice.cpp (constructModel, choosePlan).
SlicePartition choosePartition(const poplar::Target& target, const SliceTable& table,
                               const SliceOptions& options);

}  // namespace popops::internal
