#pragma once
#include <cstddef>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popops {

/// The last `size` tensors of one shape that were added.
class CircBuf {
 public:
  CircBuf(poplar::Graph& graph, const poplar::Type& dataType, unsigned size,
          const std::vector<std::size_t>& shape, const poplar::DebugContext& debugContext = {});

  /// What was added `i` additions before the last one; 0 is the last. Throws poplibs_error unless
  /// i < size().
  poplar::Tensor prev(unsigned i, poplar::program::Sequence& seq,
                      const poplar::DebugContext& debugContext = {});
  void add(const poplar::Tensor& t, poplar::program::Sequence& seq,
           const poplar::DebugContext& debugContext = {});

  /// Where the next one will lie, from 0 on: UNSIGNED_INT, one element.
  poplar::Tensor getIndex() const { return index_; }
  unsigned size() const { return size_; }

 private:
  poplar::Graph& graph_;
  unsigned size_;
  poplar::Tensor index_;
  poplar::Tensor history_;  ///< [size, shape...]
};

}  // namespace popops
