#pragma once
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"
#include "poputil/VarStructure.hpp"

/// Change the order of elements in memory. In a group, elements that differ only in one dimension
/// are neighbours.
namespace popops::rearrange {

/// Whether the transposing vertices of PopLibs take matrices of this size: 4-byte elements in
/// multiples of 4 rows and columns, 2-byte ones of 4, 1-byte ones of 8.
bool canUseFastTranspose(const poplar::Target& target, const poplar::Type& type, unsigned numRows,
                         unsigned numColumns, unsigned numTranspositions);

/// Transposes flattened matrices [rows, cols]: for each index of the mapping, getInOut's first
/// tensor into its second.
void addTransposeVertices(
    poplar::Graph& graph, const poplar::ComputeSet& cs, const poplar::Type& dType, unsigned rows,
    unsigned cols, const poplar::Graph::TileToTensorMapping& mapping,
    std::function<std::pair<const poplar::Tensor, const poplar::Tensor>(std::size_t)> getInOut,
    const poplar::DebugContext& debugContext = {});

/// [..., m, n] as a new tensor [..., n, m].
poplar::Tensor partialTranspose(poplar::Graph& graph, const poplar::Tensor& in,
                                const poplar::ComputeSet& cs,
                                const poplar::DebugContext& debugContext = {});

/// The smallest groups that these vertices take.
unsigned getMinimumRegroupGrainSize(const poplar::Type& type);

/// A copy of `t` in the groups of `to`; `t` itself if its rank is below 2. The copy is added to
/// `copies`, and nothing to the compute set.
poplar::Tensor regroupTensor(poplar::Graph& graph, const poplar::Tensor& t,
                             poplar::program::Sequence& copies,
                             const poplar::ComputeSet& transposeCS,
                             const poputil::GroupingInfo& from, const poputil::GroupingInfo& to,
                             const poplar::DebugContext& debugContext = {});
poplar::Tensor regroupTensor(poplar::Graph& graph, const poplar::Tensor& t,
                             std::vector<poplar::program::Copy>& copies,
                             const poplar::ComputeSet& transposeCS,
                             const poputil::GroupingInfo& from, const poputil::GroupingInfo& to,
                             const poplar::DebugContext& debugContext = {});

/// The same if `t` has other groups and the dimension is a multiple of the wanted group size; else
/// `t`.
poplar::Tensor regroupIfPossible(poplar::Graph& graph, const poplar::Tensor& t,
                                 poplar::program::Sequence& prog, const poputil::GroupingInfo& to,
                                 const poplar::DebugContext& debugContext = {});

/// The same with the groups of `ref`, or of `preferredGrouping` in the last dimension.
poplar::Tensor regroupIfBeneficial(poplar::Graph& graph, const poplar::Tensor& in,
                                   const poplar::Tensor& ref, poplar::program::Sequence& prog,
                                   const poplar::DebugContext& debugContext = {});
poplar::Tensor regroupIfBeneficial(poplar::Graph& graph, const poplar::Tensor& in,
                                   const poplar::Tensor& ref,
                                   std::vector<poplar::program::Copy>& copies,
                                   poplar::ComputeSet transposeCS,
                                   const poplar::DebugContext& debugContext = {});
poplar::Tensor regroupIfBeneficial(poplar::Graph& graph, const poplar::Tensor& in,
                                   std::size_t preferredGrouping, poplar::program::Sequence& prog,
                                   const poplar::DebugContext& debugContext = {});

}  // namespace popops::rearrange
