#pragma once
#include <cstddef>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// A ring buffer of the last `size` tensors added, all of one shape.
class CircBuf {
 public:
  CircBuf(poplar::Graph& graph, const poplar::Type& dataType, unsigned size,
          const std::vector<std::size_t>& shape, const poplar::DebugContext& debugContext = {});

  /// The tensor added `i` additions before the last one; 0 is the last. Throws poplibs_error
  /// unless i < size().
  poplar::Tensor prev(unsigned i, poplar::program::Sequence& seq,
                      const poplar::DebugContext& debugContext = {});
  void add(const poplar::Tensor& t, poplar::program::Sequence& seq,
           const poplar::DebugContext& debugContext = {});

  /// The index of the next tensor, from 0: UNSIGNED_INT, one element.
  poplar::Tensor getIndex() const { return index_; }
  unsigned size() const { return size_; }

 private:
  poplar::Graph& graph_;
  unsigned size_;
  poplar::Tensor index_;
  poplar::Tensor history_;  ///< [size, shape...]
};

}  // namespace popops
