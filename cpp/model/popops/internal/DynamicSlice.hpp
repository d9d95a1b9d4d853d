#pragma once
#include <cstddef>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops::internal {

/// popops::dynamicSlice, dynamicSliceWithOutput and dynamicUpdate with offsets, of any integer
/// type, that are clamped so that the slice lies inside.
poplar::Tensor clampedSlice(poplar::Graph& graph, const poplar::Tensor& t,
                            const poplar::Tensor& offset, const std::vector<std::size_t>& dims,
                            const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {});
void clampedSliceWithOutput(poplar::Graph& graph, const poplar::Tensor& output,
                            const poplar::Tensor& t, const poplar::Tensor& offset,
                            const std::vector<std::size_t>& dims,
                            const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                            const poplar::DebugContext& debugContext = {});
void clampedUpdate(poplar::Graph& graph, const poplar::Tensor& t, const poplar::Tensor& s,
                   const poplar::Tensor& offset, const std::vector<std::size_t>& dims,
                   const std::vector<std::size_t>& sizes, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext = {});

}  // namespace popops::internal
