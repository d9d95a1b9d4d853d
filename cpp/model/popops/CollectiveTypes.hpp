#pragma once
#include <iosfwd>
#include <vector>

#include "engine/kernels/collectives/CollectiveOperator.hpp"
#include "poplar/Tensor.hpp"
#include "popops/Operation.hpp"

namespace popops {

/// How a collective combines elements: gcl's operators, under their earlier popops name.
using ipujax::engine::collective::CollectiveOperator;

/// Converts a reduction's operation. Throws poplibs_error for LOG_ADD, which no collective has.
CollectiveOperator operationToCollectiveOperator(const Operation& col);

/// The part of a tensor that lies on one IPU.
struct Chunk {
  Chunk() = default;
  Chunk(poplar::Tensor tensor, unsigned index, unsigned offset)
      : tensor(std::move(tensor)), index(index), offset(offset) {}
  poplar::Tensor tensor;
  unsigned index = 0;   ///< position among the parts
  unsigned offset = 0;  ///< order among parts with the same index
};

/// All parts, and the original tensor, whose shape they have together.
struct Chunks {
  Chunks() = default;
  Chunks(unsigned size) : chunks(size) {}  // NOLINT: implicit as in the SDK
  poplar::Tensor originalInput;
  std::vector<Chunk> chunks;
};

}  // namespace popops
