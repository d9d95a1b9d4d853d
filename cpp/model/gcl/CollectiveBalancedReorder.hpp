#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/Interval.hpp"
#include "poplar/Tensor.hpp"

namespace gcl {

/// The host's side of a CollectiveBalancedReorder: converts between arrays in a tensor's own order
/// and the slices of all replicas, one after another.
struct CollectiveBalancedHostRearrangement {
  unsigned replicationFactor = 0;
  std::size_t totalElementsPerReplica = 0;
  /// Positions of the tensor's elements, in row-major order, in the slices.
  std::vector<poplar::Interval> gatheredToRefSlices;

  /// Elements of all slices, padding included.
  std::size_t getNumRearrangedTensorElems() const {
    return replicationFactor * totalElementsPerReplica;
  }
  /// Copy from `in` to `out`; elements have `elemByteSize` bytes. Padding is not written.
  void rearrangeForCollective(const char* in, char* out, std::int64_t elemByteSize) const;
  void undoRearrangeForCollective(const char* in, char* out, std::int64_t elemByteSize) const;
};

/// Divides a tensor among replicas so that all slices have the same size, and the same number of
/// elements of each tile: a tile's elements are divided by the replicas and padded to a multiple.
/// The result of reduceScatterCrossReplica on createCollectivesTensor's tensor, and the input of
/// allGatherCrossReplica, are then on the tensor's own tiles.
class CollectiveBalancedReorder {
 public:
  /// Uses the current mapping of `tensor`. Slices of a tile's elements are multiples of
  /// `grainSize`; `allowElementMap` has no effect. Throws poplar_error for 0 replicas or a grain of
  /// 0, and invalid_tile_mapping for a tensor that is not mapped.
  CollectiveBalancedReorder(poplar::Graph& graph, poplar::Tensor tensor, unsigned replicationFactor,
                            const poplar::DebugNameAndId& dnai = {}, bool allowElementMap = false,
                            unsigned grainSize = 1);

  /// One replica's slice: [elements of one replica].
  poplar::Tensor createReplicaSlice(const poplar::Type& type);
  /// The tensor that the collectives reduce or gather: [elements of all replicas], with padding.
  poplar::Tensor createCollectivesTensor(const poplar::Type& type,
                                         const std::string& debugPrefix = "");
  /// A view of such a tensor in the order and shape of the original tensor.
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
