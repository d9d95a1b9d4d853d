#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Interval.hpp"
#include "poplar/Tensor.hpp"

namespace gcl {

/// The host's side of a CollectiveBalancedReorder: between arrays in a tensor's own order and those
/// of all replicas' slices, one after another.
struct CollectiveBalancedHostRearrangement {
  unsigned replicationFactor = 0;
  std::size_t totalElementsPerReplica = 0;
  /// Where the elements of the tensor, in its row-major order, are in the slices.
  std::vector<poplar::Interval> gatheredToRefSlices;

  /// Elements of all slices, padding included.
  std::size_t getNumRearrangedTensorElems() const {
    return replicationFactor * totalElementsPerReplica;
  }
  /// From `in` to `out`; elements have `elemByteSize` bytes. Padding is not written.
  void rearrangeForCollective(const char* in, char* out, std::int64_t elemByteSize) const;
  void undoRearrangeForCollective(const char* in, char* out, std::int64_t elemByteSize) const;
};

/// Shares out a tensor over replicas so that each has a slice of one size, and of each tile's
/// elements the same number: a tile's are divided by the replicas and padded to a multiple. What
/// reduceScatterCrossReplica gives of createCollectivesTensor's tensor, and what
/// allGatherCrossReplica takes, is then on the tiles that the tensor is on.
class CollectiveBalancedReorder {
 public:
  /// Of the mapping that `tensor` has now. Slices of a tile's elements are multiples of
  /// `grainSize`; `allowElementMap` has no effect. Throws poplar_error for 0 replicas or a grain of
  /// 0, and invalid_tile_mapping for a tensor that is not mapped.
  CollectiveBalancedReorder(poplar::Graph& graph, poplar::Tensor tensor, unsigned replicationFactor,
                            const poplar::DebugNameAndId& dnai = {}, bool allowElementMap = false,
                            unsigned grainSize = 1);

  /// [elements of one replica].
  poplar::Tensor createReplicaSlice(const poplar::Type& type);
  /// [elements of all replicas], padding included: what the collectives reduce or gather.
  poplar::Tensor createCollectivesTensor(const poplar::Type& type,
                                         const std::string& debugPrefix = "");
  /// The elements of such a tensor in the order and shape of the first one; a view.
  poplar::Tensor undoRearrangeForCollective(const poplar::Tensor& tensor) const;

  std::size_t getNumRearrangedTensorElems() const { return host_.getNumRearrangedTensorElems(); }
  std::vector<std::size_t> getReferenceShape() const { return shape_; }
  const CollectiveBalancedHostRearrangement& getHostRearrangement() const { return host_; }

 private:
  poplar::Tensor create(const poplar::Type& type, unsigned slices, const std::string& name);

  poplar::Graph& graph_;
  poplar::DebugNameAndId dnai_;
  std::vector<std::size_t> shape_;
  std::vector<std::size_t> on_tile_;  ///< elements of one replica, by tile
  CollectiveBalancedHostRearrangement host_;
};

}  // namespace gcl
