#pragma once
#include <cstddef>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "popops/internal/SliceOptions.hpp"

namespace popops::internal {

/// Applies the options to offsets [..., dims] of slices of `sizes` in `dims` of a table.
class SliceOffsets {
 public:
  SliceOffsets(const poplar::Tensor& t, const std::vector<std::size_t>& dims,
               const std::vector<std::size_t>& sizes, const poplar::OptionFlags& options);

  /// The offsets to use. The options may replace those whose slices do not lie inside by 0, or end
  /// the run.
  poplar::Tensor prepared(poplar::Graph& graph, const poplar::Tensor& offsets,
                          poplar::program::Sequence& prog,
                          const poplar::DebugContext& debugContext) const;
  bool havePadding() const { return options_.has_padding_index; }
  /// Zeroes the slices in `out` [..., slice's shape] whose offsets are the padding index.
  void clearPadding(poplar::Graph& graph, const poplar::Tensor& out, const poplar::Tensor& offsets,
                    poplar::program::Sequence& prog,
                    const poplar::DebugContext& debugContext) const;

 private:
  std::vector<unsigned> limits_;  // sizes of the table, by sliced dimension
  std::vector<unsigned> last_;    // greatest offsets whose slices lie inside
  SliceOptions options_;
};

/// Copies the slices at the offsets [n, dims] to `out` [n, slice's shape]; quarters get the table's
/// metadata.
void multiSliceInto(poplar::Graph& graph, const poplar::Tensor& out, const poplar::Tensor& t,
                    const poplar::Tensor& offsets, const std::vector<std::size_t>& dims,
                    const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                    const poplar::OptionFlags& options, const poplar::DebugContext& debugContext);

}  // namespace popops::internal
