#pragma once
#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// Copies runs of rows: tOut[tOutOffset[i] : + tN[i]] = tIn[tInOffset[i] : + tN[i]] for each i.
/// Rows of tOut that no run covers keep their values, or become zero. tIn and tOut have rank 2 or
/// more and rows of one size; tN and the offsets are [n] UNSIGNED_INT. Runs should not overlap in
/// tOut; where they do, the row that comes from the last row of tIn wins.
void sequenceSlice(poplar::Graph& graph, const poplar::Tensor& tIn, const poplar::Tensor& tOut,
                   const poplar::Tensor& tN, const poplar::Tensor& tInOffset,
                   const poplar::Tensor& tOutOffset, bool zeroUnused,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {});

}  // namespace popops
