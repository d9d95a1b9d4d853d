#pragma once
#include <cstdint>

#include "engine/simd/Isa.hpp"

namespace ipujax::engine {

/// One window of max pooling's gradient in float, for `lanes` windows side by side: lane l's
/// elements are operand[row * operand_row + column * operand_column + l]; likewise in the result.
struct PickWindow {
  const float* operand;
  const float* source;  ///< one value per lane
  float* result;
  std::int64_t rows, columns;
  std::int64_t operand_row, operand_column;
  std::int64_t result_row, result_column;
};
/// Adds each lane's source to the first element that no later one exceeds (select is >=).
IPUJAX_DECLARE_SIMD(void pick(const PickWindow& window, std::int64_t lanes))

}  // namespace ipujax::engine
