#pragma once
#include <cstdint>
#include <vector>

#include "popx/Pad.hpp"

/// For the library: where popx::pad puts elements.
namespace popx::padding {

using Integers = std::vector<std::int64_t>;

struct Plan {
  poplar::Tensor kept;             ///< the elements that stay
  std::vector<std::size_t> shape;  ///< of the result
  Integers start, step;            ///< of the kept elements, for each dimension

  /// The kept elements' places in the result; there is at least one.
  poplar::Tensor placeIn(const poplar::Tensor& out) const;
};

/// Throws if there is no such result.
Plan planOf(const poplar::Tensor& t, const poplar::Tensor& value, const Integers& low,
            const Integers& high, const Integers& interior);

}  // namespace popx::padding
