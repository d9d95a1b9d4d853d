#include "engine/kernels/move/CopyCombine.hpp"

#include <string>

#include "engine/Errors.hpp"

namespace ipujax::engine {

Combiner combinerOf(std::string_view name, ElementType type) {
  const bool scaled = name == "scaled_add";
  const auto reducer = reduction::reducerOf(scaled ? "add" : name);
  using reduction::Reducer;
  if (!reducer || *reducer > Reducer::kOr)
    throw poplar_error(
        "[scatter] needs an update add, mul, min, max, and, or or scaled_add; got '" +
        std::string(name) + "'. Give other updates as an expression.");
  static const CombinerTable& table = IPUJAX_PICK(combinerTable());
  const auto at = static_cast<std::size_t>(type);
  const Combiner combiner =
      scaled ? table.scaled_add[at] : table.of[static_cast<int>(*reducer)][at];
  if (combiner.run) return combiner;
  throw poplar_error("[scatter] needs elements that '" + std::string(name) + "' can combine; got " +
                     nameOf(type) + ". Cast the operand and the updates first.");
}

}  // namespace ipujax::engine
