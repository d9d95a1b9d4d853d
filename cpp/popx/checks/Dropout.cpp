#include "popx/checks/Dropout.hpp"

#include <string>

#include "poplar/exceptions.hpp"

namespace popx::dropout {
namespace {

void need(bool good, const std::string& what, const std::string& got) {
  if (!good)
    throw poplar::poplar_error("[popx::dropoutBlock] needs " + what + "; got " + got +
                               ". Pass such operands.");
}

}  // namespace

void check(const poplar::Tensor& seed, const poplar::Tensor& input, const poplar::Tensor& starts,
           const std::vector<std::size_t>& maskShape, double keepProbability) {
  need(input.elementType() == poplar::FLOAT || input.elementType() == poplar::HALF,
       "an input of FLOAT or HALF", input.elementType().toString());
  need(seed.elementType() == poplar::UNSIGNED_INT && seed.numElements() == 2,
       "a seed of two UNSIGNED_INT", seed.shapeToString() + " of " + seed.elementType().toString());
  const bool integers =
      starts.elementType() == poplar::INT || starts.elementType() == poplar::UNSIGNED_INT;
  need(integers && starts.rank() == 1 && starts.numElements() == input.rank(),
       "an INT for each dimension of the input " + input.shapeToString() + " as starts",
       starts.shapeToString() + " of " + starts.elementType().toString());
  bool fits = maskShape.size() == input.rank();
  for (unsigned d = 0; fits && d < input.rank(); ++d)
    fits = maskShape[d] == 1 || maskShape[d] >= input.dim(d);
  need(fits, "a mask that broadcasts, or is no smaller than the input " + input.shapeToString(),
       "a mask of rank " + std::to_string(maskShape.size()) + " or with smaller sizes");
  need(keepProbability >= 0 && keepProbability <= 1, "a probability",
       std::to_string(keepProbability));
}

}  // namespace popx::dropout
