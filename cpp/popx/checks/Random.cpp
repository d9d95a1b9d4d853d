#include "popx/checks/Random.hpp"

#include "poplar/exceptions.hpp"

namespace popx::random {

Generator check(const poplar::Graph& graph, const poplar::Tensor& state,
                const std::string& algorithm, const poplar::Type& type) {
  const bool threefry = algorithm == "threefry";
  if (!threefry && algorithm != "philox" && algorithm != "default") {
    throw poplar::poplar_error(
        "[popx.rng_bit_generator] needs algorithm threefry, philox or default; got '" + algorithm +
        "'. Use one of these.");
  }
  const std::uint64_t bytes =
      state.numElements() * graph.getTarget().getTypeSize(state.elementType());
  if (bytes != 16 && (threefry || bytes != 24)) {
    throw poplar::poplar_error("[popx.rng_bit_generator] needs a state of 16 bytes" +
                               std::string(threefry ? "" : " or 24") + "; got " +
                               state.shapeToString() + " of " + state.elementType().toString() +
                               ". Use a state of that size.");
  }
  if (type == poplar::BOOL) {
    throw poplar::poplar_error(
        "[popx.rng_bit_generator] needs an integer or floating-point type; got bool. Compare bits "
        "with a threshold instead.");
  }
  return {threefry, bytes};
}

}  // namespace popx::random
