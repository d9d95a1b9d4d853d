#include "poplin/FullyConnected.hpp"

namespace poplin {
namespace fc {

std::vector<std::pair<MatMulParams, poplar::OptionFlags>> getMatMulPrePlanParameters(
    FullyConnectedParams parameters, poplar::OptionFlags matmulOptions, poplar::Type type,
    bool inferenceOnly) {
  const auto [g, batch, in, out] = parameters;
  std::vector<std::pair<MatMulParams, poplar::OptionFlags>> products;
  const auto add = [&](const char* pass, std::vector<std::size_t> a, std::vector<std::size_t> b) {
    poplar::OptionFlags options = matmulOptions;
    options.set("fullyConnectedPass", pass);
    products.emplace_back(MatMulParams{type, type, std::move(a), std::move(b)}, options);
  };
  add(inferenceOnly ? "INFERENCE_FWD" : "TRAINING_FWD", {g, batch, in}, {g, in, out});
  if (inferenceOnly) return products;
  add("TRAINING_BWD", {g, batch, out}, {g, out, in});
  add("TRAINING_WU", {g, in, batch}, {g, batch, out});
  return products;
}

}  // namespace fc
}  // namespace poplin
