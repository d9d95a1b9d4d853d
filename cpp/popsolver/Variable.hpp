#pragma once
#include <cstdint>

namespace popsolver {

/// A variable of a Model, by its number.
class Variable {
 public:
  using IndexType = std::uint32_t;
  Variable() = default;
  explicit Variable(IndexType id) : id(id) {}
  IndexType id = 0;
};

}  // namespace popsolver
