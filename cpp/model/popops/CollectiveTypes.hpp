#pragma once
#include <iosfwd>
#include <vector>

#include "engine/kernels/collectives/CollectiveOperator.hpp"
#include "poplar/Tensor.hpp"
#include "popops/Operation.hpp"

namespace popops {

/// How a collective combines elements: gcl's operators, under the name they had here before.
using ipujax::engine::collective::CollectiveOperator;

/// The operator of a reduction. Throws poplibs_error for LOG_ADD, which no collective has.
CollectiveOperator operationToCollectiveOperator(const Operation& col);

/// The part of a tensor that lies on one IPU.
struct Chunk {
  Chunk() = default;
  Chunk(poplar::Tensor tensor, unsigned index, unsigned offset)
      : tensor(std::move(tensor)), index(index), offset(offset) {}
  poplar::Tensor tensor;
  unsigned index = 0;   ///< its place among the parts
  unsigned offset = 0;  ///< within the parts of one place
};

/// All parts, and the tensor whose shape they have together.
struct Chunks {
  Chunks() = default;
  Chunks(unsigned size) : chunks(size) {}  // NOLINT: implicit as in the SDK
  poplar::Tensor originalInput;
  std::vector<Chunk> chunks;
};

}  // namespace popops
